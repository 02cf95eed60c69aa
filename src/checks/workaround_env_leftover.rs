//! Variables from an old workaround are still set.

use crate::check::Verdict;
use crate::facts::{Named, Seen};
use crate::finding::{Evidence, Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::version::Version;
use crate::view::{Gpu, RdmaGround, Stack, View};

crate::check! {
    /// A variable is set that goes around a fault, which may long be gone, or that names a network which is not here.
    ///
    /// ## Why it matters
    /// Everything works, and slower than it could: GPUs that could read each other's memory send everything through memory of the host,
    /// jobs go over Ethernet beside InfiniBand, copies are made by the compute units. With a network that is not
    /// here NCCL does not start at all (`Bootstrap : no socket interface found`).
    ///
    /// ## How it comes about
    /// `NCCL_P2P_DISABLE`, `NCCL_SHM_DISABLE`, `NCCL_IB_DISABLE`, `HSA_ENABLE_SDMA=0` and `HSA_FORCE_FINE_GRAIN_PCIE` are answers
    /// that threads give to hanging jobs; they stay in start-up files and images. Where the fault is still there they are
    /// right, so it is a warning only where nothing that is known here needs them. RCCL needs no
    /// `HSA_FORCE_FINE_GRAIN_PCIE` from ROCm 5.7 on. Interfaces of a network were called otherwise on the machine that the
    /// script came from.
    ///
    /// ## How to confirm
    /// `printenv | grep -E "NCCL|HSA"`, `ip -brief link`, and the job with and without the variable.
    "workaround-env-leftover", Runtime, Warning, each Stack, run
}

const SOCKET: &str = "NCCL_SOCKET_IFNAME";
const ADAPTER: &str = "NCCL_IB_HCA";
const P2P: &str = "NCCL_P2P_DISABLE";
const SHARED: &str = "NCCL_SHM_DISABLE";
const INFINIBAND: &str = "NCCL_IB_DISABLE";
const SDMA: &str = "HSA_ENABLE_SDMA";
const FINE_GRAIN: &str = "HSA_FORCE_FINE_GRAIN_PCIE";

/// What one variable does here.
struct Leftover {
    name: &'static str,
    cause: &'static str,
    severity: Severity,
    /// What it does, behind its name.
    does: &'static str,
    why: &'static str,
    /// What else shows it.
    evidence: Vec<Evidence>,
}

/// What came of the questions.
#[derive(Default)]
struct Answers {
    found: Vec<Leftover>,
    unknown: Option<String>,
    /// One of the variables is set.
    any: bool,
}

fn run(stack: Stack, view: &View, _: &Tables) -> Verdict {
    if view.wsl().is_some() || stack == Stack::LevelZero {
        return Verdict::NotHere;
    }
    let gpus = view.gpus_of_jobs(stack);
    if gpus.is_empty() {
        return Verdict::NotHere;
    }
    let mut answers = Answers::default();
    for name in [SOCKET, ADAPTER, P2P, SHARED, INFINIBAND] {
        if let Some(value) = answers.set(name, view) {
            match name {
                SOCKET => answers.socket(value, view),
                ADAPTER => answers.adapter(value, view),
                _ if !is_on(value) => {}
                P2P => answers.peer_to_peer(stack, &gpus, view),
                SHARED => answers.shared_memory(&gpus, view),
                _ => answers.infiniband(view),
            }
        }
    }
    if stack == Stack::Rocm {
        if let Some(value) = answers.set(SDMA, view) {
            answers.sdma(value, &gpus);
        }
        if let Some(value) = answers.set(FINE_GRAIN, view) {
            answers.fine_grain(value, view);
        }
    }
    answers.verdict(view)
}

/// NCCL takes any number but 0 for yes, and what is no number for unset.
fn is_on(value: &str) -> bool {
    value.trim().parse::<i64>().is_ok_and(|number| number != 0)
}

impl Answers {
    /// The value of a variable that is set.
    fn set<'v>(&mut self, name: &str, view: &'v View) -> Option<&'v str> {
        match view.variable(name) {
            Seen::Got("") | Seen::Absent => None,
            Seen::Got(value) => {
                self.any = true;
                Some(value)
            }
            other => {
                self.cannot_tell(format!("{name}: {}", other.why()));
                None
            }
        }
    }

    fn cannot_tell(&mut self, why: String) {
        self.unknown.get_or_insert(why);
    }

    fn add(
        &mut self,
        (name, cause): (&'static str, &'static str),
        (severity, does): (Severity, &'static str),
        why: &'static str,
    ) -> &mut Leftover {
        self.found.push(Leftover {
            name,
            cause,
            severity,
            does,
            why,
            evidence: Vec::new(),
        });
        let last = self.found.len() - 1;
        &mut self.found[last]
    }

    /// What a value names, if nothing of it is in a folder.
    fn none_of<'v>(
        &mut self,
        value: &'v str,
        folder: &str,
        here: Seen<(Vec<&str>, bool)>,
    ) -> Option<Vec<&'v str>> {
        let Names { exact, names } = Names::of(value)?;
        let (here, whole) = match here {
            Seen::Got(here) => here,
            other => {
                self.cannot_tell(format!("{folder}: {}", other.map(|_| ()).why()));
                return None;
            }
        };
        let fits = |there: &&str| names.iter().any(|name| matches(there, name, exact));
        if here.iter().any(fits) {
            return None;
        }
        if !whole {
            self.cannot_tell(format!("{folder}: not all of it could be listed"));
            return None;
        }
        Some(names)
    }

    /// NCCL fails where none of the interfaces is there that it may take.
    fn socket(&mut self, value: &str, view: &View) {
        const FOLDER: &str = "/sys/class/net";
        let interfaces = view
            .network()
            .and_then(|network| network.interfaces.as_ref());
        let Some(names) = self.none_of(value, FOLDER, interfaces.map(names_in)) else {
            return;
        };
        // Of such names only the beginning is recorded: the rest is the adapter's address.
        let starts = ["enx", "wlx", "wwx"];
        if names
            .iter()
            .any(|name| starts.iter().any(|start| name.starts_with(start)))
        {
            return self.cannot_tell(format!(
                "{SOCKET}: interfaces of that name are not recorded"
            ));
        }
        self.add(
            (SOCKET, "missing-interface"),
            (
                Severity::Warning,
                "names no network interface of this machine",
            ),
            "NCCL finds no interface to speak over, and no job on several GPUs starts",
        )
        .evidence
        .push(Evidence {
            source: FOLDER.to_owned(),
            says: format!("has none of {}", names.join(", ")),
        });
    }

    /// NCCL goes over sockets where none of the adapters is there that it may take.
    fn adapter(&mut self, value: &str, view: &View) {
        const FOLDER: &str = "/sys/class/infiniband";
        let adapters = view.network().and_then(|network| network.rdma.as_ref());
        // Where there is none nothing is lost.
        let here = match adapters.map(names_in) {
            Seen::Absent => return,
            Seen::Got((here, true)) if here.is_empty() => return,
            here => here,
        };
        let there = here.got().map(|(here, _)| here.join(", "));
        if self.none_of(value, FOLDER, here).is_none() {
            return;
        }
        self.add(
            (ADAPTER, "missing-interface"),
            (Severity::Warning, "names no adapter of this machine"),
            "NCCL then leaves the adapters that are here alone and goes over slower ways",
        )
        .evidence
        .push(Evidence {
            source: FOLDER.to_owned(),
            says: format!("has {}", there.unwrap_or_default()),
        });
    }

    fn peer_to_peer(&mut self, stack: Stack, gpus: &[&Gpu], view: &View) {
        let names_geforce = |gpu: &&Gpu| {
            gpu.name
                .as_deref()
                .is_some_and(|name| name.contains("GeForce"))
        };
        // Without another GPU, or where the driver has no such way, it does nothing.
        if gpus.len() < 2 || gpus.iter().any(names_geforce) {
            return;
        }
        let joined = stack == Stack::Cuda && view.nvswitches().next().is_some();
        // The variable is the answer to that, and it is a finding of its own.
        let is_translated = gpus.iter().any(|gpu| {
            let kind = view
                .detail_of(gpu)
                .and_then(|detail| detail.iommu_type.got());
            kind.is_some_and(|kind| kind.starts_with("DMA"))
        });
        if is_translated && !joined {
            return;
        }
        let severity = match joined {
            true => as_loud(Severity::Warning, view),
            false => Severity::Note,
        };
        self.add((P2P, "nccl"), (severity, "keeps these GPUs from reading each other's memory"), "What they send each other goes through memory of the host, many times slower where NVLink joins them");
    }

    fn shared_memory(&mut self, gpus: &[&Gpu], view: &View) {
        if gpus.len() < 2 {
            return;
        }
        // A container may have too little of it.
        let severity = match view.in_container() {
            true => Severity::Note,
            false => as_loud(Severity::Warning, view),
        };
        self.add((SHARED, "nccl"), (severity, "keeps NCCL off shared memory"), "GPUs without a direct way to each other then speak over network sockets, which is far slower");
    }

    fn infiniband(&mut self, view: &View) {
        let (severity, adapter) = match view.rdma_ground() {
            RdmaGround::InfiniBand(adapter) => (as_loud(Severity::Warning, view), adapter),
            RdmaGround::Ethernet(adapter) | RdmaGround::Adapters(adapter) => {
                (Severity::Note, adapter)
            }
            RdmaGround::None => return,
            RdmaGround::Unknown(why) => return self.cannot_tell(why),
        };
        self.add(
            (INFINIBAND, "nccl"),
            (severity, "keeps NCCL off the adapters of this machine"),
            "Jobs on several machines go over network sockets, many times slower",
        )
        .evidence
        .push(adapter);
    }

    fn sdma(&mut self, value: &str, gpus: &[&Gpu]) {
        if value.trim() != "0" {
            return;
        }
        // Old boards and slots behind a chipset need it, and their slots look like others.
        let severity = match gpus.iter().all(|gpu| gpu.data_centre) {
            true => Severity::Warning,
            false => Severity::Note,
        };
        self.add((SDMA, "sdma"), (severity, "switches the copy engines of the GPUs off"), "Copies are made by the compute units, slower and while nothing else runs on them; it is right only where copies hang without it");
    }

    fn fine_grain(&mut self, value: &str, view: &View) {
        if value.trim() != "1" {
            return;
        }
        let first = Version::parse("5.7");
        let installs = match view.rocm_installs() {
            Seen::Got(installs) => installs,
            // What a framework brings along is newer.
            Seen::Absent => return,
            other => {
                let why = other.map(|_| ()).why();
                return self.cannot_tell(format!("which ROCm is installed: {why}"));
            }
        };
        let versions: Vec<_> = installs
            .values()
            .map(|install| Version::parse(install.version.got()?))
            .collect();
        if versions
            .iter()
            .any(|version| version.is_some() && *version < first)
        {
            return;
        }
        if versions.iter().any(Option::is_none) {
            return self.cannot_tell("the version of ROCm is not known".to_owned());
        }
        self.add(
            (FINE_GRAIN, "fine-grain-pcie"),
            (
                Severity::Note,
                "is set, and RCCL needs it no more from ROCm 5.7 on",
            ),
            "It changes how memory over PCIe is used, for every program of this shell",
        );
    }

    fn verdict(mut self, view: &View) -> Verdict {
        // The loudest first, else in the order of the questions.
        self.found
            .sort_by_key(|leftover| std::cmp::Reverse(leftover.severity));
        let Some(first) = self.found.first() else {
            return match self.unknown {
                Some(why) => Verdict::cannot_tell(
                    why,
                    "`printenv | grep -E \"NCCL|HSA\"` where the program runs",
                ),
                None if self.any => Verdict::fine("what is set does no harm that is known here"),
                None => Verdict::fine("no variable of a workaround is set"),
            };
        };
        let value = |name| view.variable(name).into_got().unwrap_or_default();
        let names: Vec<&str> = self.found.iter().map(|leftover| leftover.name).collect();
        let mut finding = Finding::new(format!(
            "{}={} {}",
            first.name,
            value(first.name),
            first.does
        ))
        .cause(first.cause)
        .severity(first.severity)
        // It is slower, or keeps jobs on several GPUs from starting.
        .works_all_the_same()
        .likely()
        .why(first.why)
        .fix(FixCall::new("unset-workaround").with("name", names.join(" and ")));
        for leftover in &self.found {
            finding = finding.saw(
                leftover.name,
                format!("{}: {}", value(leftover.name), leftover.does),
            );
            finding.evidence.extend(leftover.evidence.iter().cloned());
        }
        finding.into()
    }
}

/// A job of a scheduler gets such variables from whoever runs the cluster.
fn as_loud(severity: Severity, view: &View) -> Severity {
    match view.scheduler_job() {
        Some(_) => Severity::Note,
        None => severity,
    }
}

/// Names that NCCL may take, as `eth,ib` or `=eth0,eth1:5000`.
struct Names<'v> {
    exact: bool,
    names: Vec<&'v str>,
}

impl<'v> Names<'v> {
    /// None: the value only names what is not to be taken, or nothing.
    fn of(value: &'v str) -> Option<Names<'v>> {
        let (exact, list) = match value.strip_prefix('=') {
            Some(list) => (true, list),
            None => (false, value),
        };
        let names: Vec<&str> = list
            .split(',')
            .map(|entry| entry.split(':').next().unwrap_or(entry))
            .filter(|name| !name.is_empty())
            .collect();
        (!value.starts_with('^') && !names.is_empty()).then_some(Names { exact, names })
    }
}

/// The names in a folder, and whether these are all.
fn names_in<T>(named: &Named<T>) -> (Vec<&str>, bool) {
    (
        named.items.keys().map(String::as_str).collect(),
        named.whole,
    )
}

fn matches(there: &str, name: &str, exact: bool) -> bool {
    if exact {
        there == name
    } else {
        there.starts_with(name)
    }
}
