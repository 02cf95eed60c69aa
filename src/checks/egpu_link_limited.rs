//! A GPU is outside of the machine, behind Thunderbolt or USB4.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::Finding;
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::{Gpu, View};

crate::check! {
    /// The GPU hangs on a Thunderbolt or USB4 port.
    ///
    /// ## Why it matters
    /// Such a link has four lanes at most, and computers with some enclosures stop responding under load although everything looks right
    /// while the GPU is idle.
    ///
    /// ## How it comes about
    /// That is how external GPUs work. It costs time where much goes to the GPU and back: loading a model, and what does not fit
    /// into its memory.
    ///
    /// ## How to confirm
    /// `cat /sys/bus/pci/devices/ADDRESS/removable` says `removable`; `boltctl list`; run something that keeps the GPU busy.
    "egpu-link-limited", Capability, Note, each Gpu, run
}

fn run(gpu: &Gpu, view: &View, _: &Tables) -> Verdict {
    if !gpu.is_on_bus() || view.wsl().is_some() {
        return Verdict::NotHere;
    }
    let address = match view.external(gpu) {
        Seen::Got(address) => address,
        Seen::Absent => return Verdict::NotHere,
        other => {
            let address = gpu.pci.as_deref().unwrap_or(&gpu.key);
            let file = format!("/sys/bus/pci/devices/{address}/removable");
            return Verdict::cannot_tell(
                format!("{file}: {}", other.map(|_| ()).why()),
                format!("`cat {file}`"),
            );
        }
    };
    let mut finding = Finding::new(
        "an external GPU: its link is narrow, and that it works while idle proves nothing",
    )
    .saw(
        format!("/sys/bus/pci/devices/{address}/removable"),
        "removable",
    );
    if let Some(link) = &gpu.link
        && let Some(width) = link.width
    {
        finding = finding.saw(
            format!("/sys/bus/pci/devices/{}/current_link_width", link.hop),
            width.to_string(),
        );
    }
    finding
        .why(
            "Loading a model takes longer than in a slot, and some enclosures fail only under load",
        )
        .fix(FixCall::new("try-egpu-under-load"))
        .into()
}
