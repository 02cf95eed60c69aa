//! The numbers for render nodes are used up.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::Finding;
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::rocm::KFD_NODES;
use crate::view::{Gpu, Stack, View};
use std::collections::BTreeSet;

crate::check! {
    /// A partitioned GPU lacks a partition because there are no numbers left for render nodes.
    ///
    /// ## Why it matters
    /// Each partition of an MI300 needs a render node of its own. Eight GPUs with eight partitions each take all 64 numbers that
    /// many kernels have; where another driver holds one of them, the last partition is missing and nothing says so.
    ///
    /// ## How it comes about
    /// Another driver with a DRM device, mostly `ast` of the server's management graphics, was loaded first.
    ///
    /// ## How to confirm
    /// `ls /dev/dri | grep -c renderD`, and `ls -l /sys/class/drm` for whose they are.
    "amdgpu-render-minors-exhausted", Driver, Error, each Gpu, run
}

/// Render nodes are numbered from here; so many there are.
const FIRST: u64 = 128;
const ALL: usize = 64;

fn run(gpu: &Gpu, view: &View, _: &Tables) -> Verdict {
    if view.wsl().is_some() || !gpu.is_on_bus() || gpu.passed_in == Some(false) {
        return Verdict::NotHere;
    }
    // A node that cannot be read may be the one that is missed.
    let kfd = match &view.facts.kfd {
        Seen::Got(kfd) => kfd,
        Seen::Absent => return Verdict::NotHere,
        _ if !gpu.data_centre => return Verdict::NotHere,
        other => {
            return Verdict::cannot_tell(
                format!("/dev/dri: {}", other.as_ref().map(|_| ()).why()),
                "`ls /dev/dri`",
            );
        }
    };
    let has = gpu.kfd_nodes.len();
    let twins = view
        .gpus_of(Stack::Rocm)
        .filter(|other| other.id == gpu.id && !other.remembered);
    let most = twins.map(|other| other.kfd_nodes.len()).max().unwrap_or(0);
    if most < 2 {
        return Verdict::NotHere;
    }
    if has == most {
        return Verdict::fine(format!("it has {has} partitions, as many as its twins"));
    }
    if let Some((number, node)) = kfd
        .nodes
        .items
        .iter()
        .find(|(_, node)| node.properties.is_unknown())
    {
        return Verdict::cannot_tell(
            format!(
                "{KFD_NODES}/{number}/properties: {}",
                node.properties.as_ref().map(|_| ()).why()
            ),
            "`ls /dev/dri`",
        );
    }
    let of_nodes = kfd.nodes.items.values();
    let mut minors: BTreeSet<u64> = of_nodes
        .filter_map(|node| node.properties.got()?.get("drm_render_minor").copied())
        .filter(|minor| *minor >= FIRST)
        .collect();
    let in_class = view.facts.drm.got();
    let named = in_class.into_iter().flat_map(|drm| drm.minors.items.keys());
    minors.extend(named.filter_map(|name| name.strip_prefix("renderD")?.parse::<u64>().ok()));
    // Newer kernels have more numbers. The one that is missing here may be another driver's, which needs no render node to
    // hold it.
    let has_more = minors
        .last()
        .is_some_and(|last| *last >= FIRST + ALL as u64);
    if has_more || minors.len() + 1 < ALL {
        return Verdict::NotHere;
    }
    let finding = Finding::new(format!(
        "this GPU has {has} partitions where its twins have {most}: the numbers for render nodes are used up"
    ))
    .saw(KFD_NODES, format!("{has} nodes of this GPU, {most} of others of its kind"))
    .saw(
        "/sys/class/drm",
        format!("{} of the {ALL} numbers for render nodes are used by GPUs", minors.len()),
    )
    .why("Programs do not see the partition that is missing, and whoever counts on it fails")
    .fix(view.driver_fix(FixCall::new("free-render-minor")));
    match kfd.nodes.whole {
        true => finding,
        false => finding.likely(),
    }
    .into()
}
