//! Programs may lock too little memory for devices that read it by themselves.

use crate::check::{Verdict, worst};
use crate::facts::Seen;
use crate::finding::{Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::access::Access;
use crate::view::{NotGpu, RdmaGround, Stack, View};

crate::check! {
    /// Programs of this shell may lock less memory than adapters that read it by themselves (RDMA), or the NPU, need.
    ///
    /// ## Why it matters
    /// Memory that a device reads must stay where it is, so programs lock it. Past the limit jobs on several machines end as they
    /// start: `ibv_reg_mr_iova2` fails with `Cannot allocate memory`; on one machine alone everything works. Programs for the
    /// NPU of AMD lock 64 MiB before they do anything, and end with `mmap failed (err=11)`.
    ///
    /// ## How it comes about
    /// The usual limit is 64 KiB or 8 MiB, and Docker's is no higher. What stands in `limits.conf` counts for new logins;
    /// services, schedulers such as `slurmd`, and what they launch have limits of their own.
    ///
    /// ## How to confirm
    /// `ulimit -l` inside the job (`mpirun ... bash -c "ulimit -l"`), `grep locked /proc/self/limits`,
    /// `cat /sys/class/infiniband/*/ports/*/state`, and `xrt-smi validate` for the NPU.
    "memlock-limit-low", Runtime, Warning, each Stack, run
}

const LIMITS: &str = "/proc/self/limits";
const WOULD_TELL: &str = "`ulimit -l` where the program is started";
/// Buffers of NCCL and MPI do not fit into less than this, in bytes; so much the library of the NPU locks at its start
/// (amd/xdna-driver src/shim/kmq/pcidev.cpp, buffer.cpp).
const TOO_LOW: u64 = 64 << 20;
/// Services that start jobs for others.
const LAUNCHERS: [&str; 3] = ["k3s.service", "kubelet.service", "slurmd.service"];
/// This is enough for most.
const ENOUGH: u64 = 1 << 30;

fn run(stack: Stack, view: &View, _: &Tables) -> Verdict {
    if view.wsl().is_some() || view.is_tegra() {
        return Verdict::NotHere;
    }
    worst([of_adapters(stack, view), of_npu(stack, view)].into_iter())
}

fn of_adapters(stack: Stack, view: &View) -> Verdict {
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
    let soft = match low_limit(view) {
        Ok(soft) => soft,
        Err(verdict) => return verdict,
    };
    let mut finding = found(soft, "RDMA")
        .cause("rdma")
        .severity(severity)
        .saw(adapter.source, adapter.says)
        .why("Jobs on several machines end as they start, with `Cannot allocate memory`; services and what a scheduler launches have limits of their own");
    // What starts jobs here has a limit of its own, which counts for them.
    let units = view.facts.services.got().map(|services| &services.units);
    let launcher = LAUNCHERS.iter().find_map(|name| {
        let unit = units?.get(*name)?.got()?;
        unit.is_used().then_some(&unit.file)
    });
    if let Some(file) = launcher.filter(|_| view.scheduler_job().is_none()) {
        finding = finding.severity(Severity::Note).saw(
            file,
            "starts the jobs of this machine, with a limit of its own",
        );
    }
    match certain {
        true => finding.into(),
        false => finding.likely().into(),
    }
}

/// An NPU of AMD that this user may open, with the library that its programs use.
fn of_npu(stack: Stack, view: &View) -> Verdict {
    let is_held = |npu: &&NotGpu| {
        let function = view.facts.pci.entry(&npu.pci).into_got();
        let driver = function.and_then(|function| function.driver.got());
        driver.is_some_and(|driver| driver == "amdxdna")
    };
    let Some(npu) = view.npus_of(stack).find(is_held) else {
        return Verdict::NotHere;
    };
    let nodes = view.nodes_of(stack);
    let may_open = |path: &str| matches!(view.access(path), Access::Allowed(_));
    if !nodes.iter().any(|node| node.npu && may_open(&node.path)) {
        return Verdict::NotHere;
    }
    let mut library = None;
    for pattern in ["libxrt*", "xrt*"] {
        match view.packages_matching(pattern) {
            Seen::Got(packages) => library = library.or(packages.first().map(|(name, _)| *name)),
            Seen::Absent => {}
            other => {
                return Verdict::cannot_tell(
                    format!(
                        "whether programs for the NPU are installed: {}",
                        other.map(|_| ()).why()
                    ),
                    "`xrt-smi validate`",
                );
            }
        }
    }
    let Some(library) = library else {
        return Verdict::NotHere;
    };
    match low_limit(view) {
        Ok(soft) => found(soft, "the NPU")
            .cause("npu")
            .severity(Severity::Error)
            .likely()
            .saw(
                format!("/sys/bus/pci/devices/{}/driver", npu.pci),
                "amdxdna",
            )
            .saw(view.package_database(), format!("{library} is installed"))
            .why(
                "Programs for the NPU lock 64 MiB of memory before they do anything, and end there",
            )
            .into(),
        Err(verdict) => verdict,
    }
}

/// How much memory may be locked, in bytes, where that is too little. Err: it is not, or nobody can tell.
fn low_limit(view: &View) -> Result<u64, Verdict> {
    let limit = view
        .network()
        .and_then(|network| network.locked_memory.as_ref());
    let limit = match limit {
        Seen::Got(limit) => limit,
        other => {
            let why = other.map(|_| ()).why();
            return Err(Verdict::cannot_tell(format!("{LIMITS}: {why}"), WOULD_TELL));
        }
    };
    let soft = match limit.soft {
        None => {
            let says = "memory may be locked without a limit";
            return Err(Verdict::fine(format!("{LIMITS}: {says}")));
        }
        Some(soft) => soft,
    };
    if soft >= ENOUGH {
        let says = format!("{LIMITS}: {} MiB may be locked", soft >> 20);
        return Err(Verdict::fine(says));
    }
    let users = view.facts.users.got();
    if let Some(other) = users.and_then(|users| users.judged.as_ref()) {
        return Err(Verdict::cannot_tell(
            format!(
                "{LIMITS} is of the process that asks, and not of {}",
                other.name
            ),
            WOULD_TELL,
        ));
    }
    // Root may lock what it wants, but not in a container, which takes that right away.
    let process = users.and_then(|users| users.process.got());
    if process.is_some_and(|process| process.uid == 0) && !view.in_container() {
        return Err(Verdict::fine("root may lock memory without a limit"));
    }
    if soft >= TOO_LOW {
        return Err(Verdict::cannot_tell(
            format!(
                "{LIMITS}: {} MiB may be locked, and whether that is enough depends on the program",
                soft >> 20
            ),
            "a run of the program",
        ));
    }
    Ok(soft)
}

fn found(soft: u64, purpose: &str) -> Finding {
    Finding::new(format!(
        "a program of this shell may lock {} KiB of memory, too little for {purpose}",
        soft >> 10
    ))
    // Each GPU works by itself.
    .works_all_the_same()
    .saw(LIMITS, format!("Max locked memory {soft} bytes"))
    .fix(FixCall::new("raise-memlock"))
}
