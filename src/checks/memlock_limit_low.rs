//! Programs may lock too little memory for adapters that read it by themselves.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::{Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::{RdmaGround, Stack, View};

crate::check! {
    /// This machine has adapters that read and write memory by themselves (RDMA), and programs of this shell may lock so
    /// little memory that it is not enough for them.
    ///
    /// ## Why it matters
    /// Memory that an adapter reads must stay where it is, so programs lock it. Past the limit jobs on several machines end as they
    /// start: `ibv_reg_mr_iova2` fails with `Cannot allocate memory`. On one machine alone everything works.
    ///
    /// ## How it comes about
    /// The usual limit is 64 KiB or 8 MiB, and Docker's is no higher. What stands in `limits.conf` counts for new logins;
    /// services, schedulers such as `slurmd`, and what they launch have limits of their own.
    ///
    /// ## How to confirm
    /// `ulimit -l` inside the job (`mpirun ... bash -c "ulimit -l"`), `grep locked /proc/self/limits`, and
    /// `cat /sys/class/infiniband/*/ports/*/state`.
    "memlock-limit-low", Runtime, Warning, each Stack, run, later ["npu"]
}

const LIMITS: &str = "/proc/self/limits";
const WOULD_TELL: &str = "`ulimit -l` where the program is started";
/// Buffers of NCCL and MPI do not fit into less than this, in bytes.
const TOO_LOW: u64 = 64 << 20;
/// This is enough for most.
const ENOUGH: u64 = 1 << 30;

fn run(stack: Stack, view: &View, _: &Tables) -> Verdict {
    if view.wsl().is_some() || view.is_tegra() {
        return Verdict::NotHere;
    }
    let gpus = view.gpus_of_jobs(stack);
    if gpus.is_empty() {
        return Verdict::NotHere;
    }
    let (severity, adapter, certain) = match view.rdma_ground() {
        RdmaGround::None => return Verdict::NotHere,
        RdmaGround::InfiniBand(adapter) => (Severity::Error, adapter, true),
        RdmaGround::Adapters(adapter) => (Severity::Error, adapter, false),
        RdmaGround::Ethernet(adapter) if gpus.iter().any(|gpu| gpu.data_centre) => {
            (Severity::Warning, adapter, false)
        }
        RdmaGround::Ethernet(adapter) => (Severity::Note, adapter, false),
        RdmaGround::Unknown(why) => return Verdict::cannot_tell(why, WOULD_TELL),
    };
    let limit = view
        .network()
        .and_then(|network| network.locked_memory.as_ref());
    let limit = match limit {
        Seen::Got(limit) => limit,
        other => {
            return Verdict::cannot_tell(
                format!("{LIMITS}: {}", other.map(|_| ()).why()),
                WOULD_TELL,
            );
        }
    };
    let soft = match limit.soft {
        None => return Verdict::fine(format!("{LIMITS}: memory may be locked without a limit")),
        Some(soft) if soft >= ENOUGH => {
            return Verdict::fine(format!("{LIMITS}: {} MiB may be locked", soft >> 20));
        }
        Some(soft) => soft,
    };
    let users = view.facts.users.got();
    if let Some(other) = users.and_then(|users| users.judged.as_ref()) {
        return Verdict::cannot_tell(
            format!(
                "{LIMITS} is of the process that asks, and not of {}",
                other.name
            ),
            WOULD_TELL,
        );
    }
    // Root may lock what it wants, but not in a container, which takes that right away.
    if users.is_some_and(|users| users.process.got().is_some_and(|process| process.uid == 0))
        && !view.in_container()
    {
        return Verdict::fine("root may lock memory without a limit");
    }
    if soft >= TOO_LOW {
        return Verdict::cannot_tell(
            format!(
                "{LIMITS}: {} MiB may be locked, and whether that is enough depends on the program",
                soft >> 20
            ),
            "a run of the program",
        );
    }
    let may_raise = match limit.hard {
        None => ", which it may raise by itself".to_owned(),
        Some(hard) if hard >= ENOUGH => format!(", which it may raise to {} MiB", hard >> 20),
        Some(_) => String::new(),
    };
    let mut finding = Finding::new(format!(
        "a program of this shell may lock {} KiB of memory, too little for RDMA{may_raise}",
        soft >> 10
    ))
    .cause("rdma")
    .severity(severity)
    // Each GPU works by itself.
    .works_all_the_same()
    .saw(LIMITS, format!("Max locked memory {soft} bytes"))
    .saw(adapter.source, adapter.says)
    .why("Jobs on several machines end as they start, with `Cannot allocate memory`; services and what a scheduler launches have limits of their own")
    .fix(FixCall::new("raise-memlock"));
    if !certain {
        finding = finding.likely();
    }
    finding.into()
}
