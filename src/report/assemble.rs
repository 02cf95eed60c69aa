//! Puts together what a run has to say. Nothing is decided here: what is right or wrong, the checks have said.

use super::versions::versions;
use super::{
    Counts, FindingRow, FoldedRow, GpuRow, HostLine, IndexRow, LinkRow, NotGpuRow, Report,
    UntoldRow, VerdictRow,
};
use crate::chain::{Answer, Subject};
use crate::check::Verdict;
use crate::facts::{Facts, Failure, Seen};
use crate::finding::{Finding, Severity};
use crate::fix::Fix;
use crate::readiness::{Readiness, State};
use crate::tables::Tables;
use crate::view::visible::Agent;
use crate::view::{Gpu, Place, Vendor, View, is_address};

/// Where the facts come from and when.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// `live`, `root DIR`, `replay of ...`.
    pub words: String,
    /// RFC 3339, where it is known.
    pub clock: Option<String>,
}

/// The report of a run.
pub fn assemble(
    view: &View,
    answers: &[Answer],
    readiness: &[Readiness],
    origin: &Origin,
) -> Report {
    let orders = Orders {
        cuda: view.cuda_order(),
        hip: view.hip_order(),
    };
    let gpus: Vec<GpuRow> = view
        .gpus
        .iter()
        .map(|gpu| gpu_row(gpu, view, &orders))
        .collect();
    let mut gpus = gpus;
    for gpu in &mut gpus {
        say_what_is_lost(gpu, answers, readiness);
    }
    let verdicts: Vec<VerdictRow> = answers
        .iter()
        .map(|answer| verdict_row(answer, answers))
        .collect();
    let mut report = Report {
        schema: 1,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        tables: Tables::AS_OF.to_owned(),
        origin: origin.words.clone(),
        clock: origin.clock.clone(),
        host: host_line(view),
        next_boot: view
            .next_kernel_without_nvidia()
            .and_then(|kernel| kernel.says()),
        hint: hint(view),
        gpus_whole: view.gpus_whole,
        not_gpus: view.not_gpus.iter().map(not_gpu_row).collect(),
        versions: versions(view),
        readiness: readiness.to_vec(),
        findings: findings(view, answers),
        verdicts,
        untold: untold(view, answers, &gpus, &orders),
        gpus,
        counts: Counts::default(),
        facts: None,
    };
    report.count();
    report
}

impl Report {
    /// Counts again, after something was filtered out.
    pub fn count(&mut self) {
        let open = |severity: Severity| {
            let rows = self.findings.iter();
            number(rows.filter(|row| row.severity == severity).count())
        };
        let said = |verdict: &str| {
            let rows = self.verdicts.iter();
            number(rows.filter(|row| row.verdict == verdict).count())
        };
        self.counts = Counts {
            errors: open(Severity::Error),
            warnings: open(Severity::Warning),
            notes: open(Severity::Note),
            fine: said("fine"),
            not_here: said("not_here"),
            cannot_tell: said("cannot_tell"),
            folded: said("blocked"),
        };
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn host_line(view: &View) -> HostLine {
    let facts = view.facts;
    let os = facts.os_release.got();
    let os_field = |name: &str| os.and_then(|os| os.fields.get(name).cloned());
    let kernel = facts.kernel.got();
    let from_proc = facts.proc_hardware.got();
    let from_crate = facts.sysinfo.got();
    let dmi = facts.dmi.got();
    let dmi_text = |field: Option<&Seen<String>>| field.and_then(|seen| seen.got().cloned());
    let product = [
        dmi_text(dmi.map(|dmi| &dmi.vendor)),
        dmi_text(dmi.map(|dmi| &dmi.product)),
    ];
    let product: Vec<String> = product.into_iter().flatten().collect();
    HostLine {
        os: os_field("PRETTY_NAME").or_else(|| os_field("NAME")),
        os_id: os_field("ID"),
        kernel: kernel.and_then(|kernel| kernel.release.got().cloned()),
        machine: kernel.and_then(|kernel| kernel.machine.got().cloned()),
        cpu: from_crate
            .and_then(|hardware| hardware.cpu.clone())
            .or_else(|| from_proc.and_then(|hardware| hardware.cpu.got().cloned())),
        cpus: from_crate
            .and_then(|hardware| hardware.cpus)
            .or_else(|| from_proc.and_then(|hardware| hardware.cpus.got().copied())),
        memory_bytes: from_crate
            .and_then(|hardware| hardware.memory_bytes)
            .or_else(|| from_proc.and_then(|hardware| hardware.memory_bytes.got().copied())),
        product: (!product.is_empty()).then(|| product.join(" ")),
        place: view.place.got().map(place_words),
        hypervisor: view.hypervisor(),
        secure_boot: secure_boot(facts),
        user: user(facts),
    }
}

fn place_words(place: &Place) -> String {
    match place {
        Place::Host => "host".to_owned(),
        Place::Container(engine) => format!("container ({engine})"),
        Place::Wsl(version) => format!("wsl {version}"),
    }
}

fn secure_boot(facts: &Facts) -> Option<String> {
    let security = facts.security.got()?;
    match &security.secure_boot {
        Seen::Got(true) => Some("on".to_owned()),
        Seen::Got(false) | Seen::Absent => Some("off".to_owned()),
        _ => None,
    }
}

fn user(facts: &Facts) -> Option<String> {
    let users = facts.users.got()?;
    if let Some(judged) = &users.judged {
        return Some(format!(
            "uid {} ({}, {})",
            judged.uid, judged.name, judged.via
        ));
    }
    let process = users.process.got()?;
    Some(match &process.name {
        Some(name) => format!("uid {} ({name})", process.uid),
        None => format!("uid {}", process.uid),
    })
}

fn gpu_row(gpu: &Gpu, view: &View, orders: &Orders) -> GpuRow {
    let driver_version: Option<String> = match gpu.driver.got().map(String::as_str) {
        Some("nvidia") => view
            .nvidia_loaded_version()
            .into_got()
            .map(|(version, _)| version.to_owned()),
        Some("dxgkrnl") => view
            .facts
            .nvml
            .got()
            .and_then(|nvml| nvml.driver_version.got().cloned()),
        Some("amdgpu") => view
            .module("amdgpu")
            .got()
            .and_then(|module| module.version.got().cloned()),
        _ => None,
    };
    GpuRow {
        key: gpu.key.clone(),
        pci: gpu.pci.clone(),
        vendor: (gpu.vendor != Vendor::Other || gpu.id.is_some())
            .then(|| gpu.vendor.name().to_owned()),
        id: gpu.id.map(id_text),
        name: gpu.name.clone(),
        architecture: gpu.architecture.clone(),
        target: gpu.target.clone(),
        memory_bytes: gpu.memory_bytes,
        driver: match &gpu.driver {
            Seen::Got(driver) => Some(driver.clone()),
            Seen::Absent => Some("none".to_owned()),
            _ => None,
        },
        driver_version,
        flavour: gpu.flavour.clone(),
        integrated: gpu.integrated,
        asleep: gpu.asleep,
        passed_in: gpu.passed_in,
        lost: false,
        link: gpu.link.as_ref().map(|link| LinkRow {
            speed: link.speed.clone(),
            width: link.width,
            max_speed: link.max_speed.clone(),
            max_width: link.max_width,
            hop: link.hop.clone(),
        }),
        index: IndexRow {
            nvml: view.nvml_device(gpu).map(|device| device.index),
            cuda: place_in(orders.cuda.as_deref(), gpu),
            hip: place_in(orders.hip.as_deref(), gpu),
            drm_card: gpu.drm_card.clone(),
            render: gpu.render.clone(),
            kfd_nodes: gpu.kfd_nodes.clone(),
        },
    }
}

/// A lost GPU, and one of a stack that cannot start, has no number by which a program could ask for it.
fn say_what_is_lost(gpu: &mut GpuRow, answers: &[Answer], readiness: &[Readiness]) {
    let about = Subject::Gpu(gpu.key.clone());
    gpu.lost = answers.iter().any(|answer| {
        answer.check == "gpu-fell-off-bus"
            && answer.subject == about
            && answer.severity == Severity::Error
            && matches!(answer.verdict, Verdict::Found(_))
    });
    let is_broken = |stack: &str| {
        let mut rows = readiness.iter();
        rows.any(|row| row.stack == stack && row.state == State::Broken)
    };
    if gpu.lost || is_broken("cuda") {
        gpu.index.cuda = None;
    }
    if gpu.lost || is_broken("rocm") {
        gpu.index.hip = None;
    }
}

/// The orders in which programs of this environment find the GPUs.
struct Orders {
    cuda: Option<Vec<Agent>>,
    hip: Option<Vec<Agent>>,
}

/// The first number that a runtime gives a GPU: of a partitioned one that of its first partition. None: not known, or hidden.
fn place_in(order: Option<&[Agent]>, gpu: &Gpu) -> Option<u32> {
    let place = order?
        .iter()
        .position(|agent| agent.gpu.as_ref() == Some(&gpu.key))?;
    u32::try_from(place).ok()
}

fn id_text((vendor, device): (u16, u16)) -> String {
    format!("{vendor:04x}:{device:04x}")
}

fn not_gpu_row(device: &crate::view::NotGpu) -> NotGpuRow {
    NotGpuRow {
        pci: device.pci.clone(),
        id: device.id.map(id_text),
        name: device.name.clone(),
        kind: device.kind.to_owned(),
    }
}

/// Roots only, errors first, then by link, then what concerns more before what concerns less: the machine, a stack, a GPU.
fn findings(view: &View, answers: &[Answer]) -> Vec<FindingRow> {
    let mut open: Vec<(usize, &Answer, &Finding)> = answers
        .iter()
        .enumerate()
        .filter_map(|(index, answer)| match &answer.verdict {
            Verdict::Found(finding) if answer.is_open() => Some((index, answer, &**finding)),
            _ => None,
        })
        .collect();
    open.sort_by_key(|(_, answer, _)| {
        (
            std::cmp::Reverse(answer.severity),
            answer.link,
            match answer.subject {
                Subject::Machine => 0,
                Subject::Stack(_) => 1,
                Subject::Gpu(_) => 2,
                Subject::Environment(_) => 3,
            },
            answer.subject.name(),
            answer.check,
        )
    });
    open.into_iter()
        .map(|(index, answer, finding)| FindingRow {
            check: answer.check.to_owned(),
            cause: finding.cause.map(str::to_owned),
            severity: answer.severity,
            confidence: finding.confidence,
            link: answer.link,
            subject: answer.subject.name(),
            title: finding.title.clone(),
            evidence: finding.evidence.clone(),
            why: finding.why.clone(),
            fixes: fixes(view, finding, &answer.subject),
            folded: folded(answers, index),
        })
        .collect()
}

/// A fix of a finding about a GPU may name its address.
fn fixes(view: &View, finding: &Finding, subject: &Subject) -> Vec<Fix> {
    let address = match subject {
        Subject::Gpu(key) => Some(key.strip_prefix("proc:").unwrap_or(key)),
        _ => None,
    };
    let address = address.filter(|address| is_address(address));
    finding
        .fixes
        .iter()
        .filter_map(|call| match address {
            Some(address) => view.fix(&call.clone().with("address", address)),
            None => view.fix(call),
        })
        .collect()
}

fn folded(answers: &[Answer], root: usize) -> Vec<FoldedRow> {
    answers
        .iter()
        .filter(|answer| answer.folded_into == Some(root))
        .map(|answer| FoldedRow {
            check: answer.check.to_owned(),
            subject: answer.subject.name(),
            was: kind(&answer.verdict).to_owned(),
            says: says(&answer.verdict).unwrap_or_default(),
        })
        .collect()
}

fn kind(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Fine(_) => "fine",
        Verdict::NotHere => "not_here",
        Verdict::CannotTell { .. } => "cannot_tell",
        Verdict::Found(_) => "found",
    }
}

fn says(verdict: &Verdict) -> Option<String> {
    match verdict {
        Verdict::Fine(says) => Some(says.clone()),
        Verdict::NotHere => None,
        Verdict::CannotTell { why, .. } => Some(why.clone()),
        Verdict::Found(finding) => Some(finding.title.clone()),
    }
}

fn verdict_row(answer: &Answer, answers: &[Answer]) -> VerdictRow {
    let by = answer.folded_into.and_then(|root| answers.get(root));
    let found = match &answer.verdict {
        Verdict::Found(finding) => Some(finding),
        _ => None,
    };
    VerdictRow {
        check: answer.check.to_owned(),
        subject: answer.subject.name(),
        verdict: match by {
            Some(_) => "blocked".to_owned(),
            None => kind(&answer.verdict).to_owned(),
        },
        says: says(&answer.verdict),
        by: by.map(|root| root.check.to_owned()),
        was: by.map(|_| kind(&answer.verdict).to_owned()),
        cause: found.and_then(|finding| finding.cause.map(str::to_owned)),
        severity: found.map(|_| answer.severity),
    }
}

/// Questions without an answer, sources that failed, and what is not known of a GPU.
fn untold(view: &View, answers: &[Answer], gpus: &[GpuRow], orders: &Orders) -> Vec<UntoldRow> {
    let mut rows = Vec::new();
    if !view.gpus_whole {
        rows.push(UntoldRow {
            what: "which GPUs are here".to_owned(),
            why: view.why_gpus_are_unknown(),
            would_tell: if view.is_tegra() {
                "`tegrastats`".to_owned()
            } else {
                "a run on the machine itself, or a tree that holds `/sys/bus/pci/devices`"
                    .to_owned()
            },
        });
    }
    for answer in answers {
        if let Verdict::CannotTell { why, would_tell } = &answer.verdict
            && answer.folded_into.is_none()
        {
            rows.push(UntoldRow {
                what: match &answer.subject {
                    Subject::Machine => answer.check.to_owned(),
                    subject => format!("{} ({})", answer.check, subject.name()),
                },
                why: why.clone(),
                would_tell: would_tell.clone(),
            });
        }
    }
    for (source, failure) in view.facts.failed_sources() {
        let (why, would_tell) = match &failure {
            // A library that says what is wrong has answered: the findings go on from there.
            Failure::Error { what } if LIBRARIES.contains(&source) => {
                if what.starts_with("not loaded") {
                    (what.clone(), "")
                } else {
                    (format!("it answered {what}"), "")
                }
            }
            _ => (failure.to_string(), another_run(source, &failure)),
        };
        rows.push(UntoldRow {
            what: format!("source {source}"),
            why,
            would_tell: would_tell.to_owned(),
        });
    }
    for gpu in gpus {
        rows.extend(unknown_fields(gpu, orders));
    }
    rows
}

/// What would make a source answer that failed.
fn another_run(source: &str, failure: &Failure) -> &'static str {
    match failure {
        Failure::Denied { .. } if source == "kernel_log" => {
            "a run with `sudo`, or as a member of the group `adm` or `systemd-journal`"
        }
        Failure::Denied { .. } => "a run with `sudo`",
        Failure::TimedOut { .. } => "another run, with a longer `--timeout`",
        Failure::Crashed { .. } | Failure::Error { .. } => "another run",
    }
}

/// Sources that are libraries.
const LIBRARIES: [&str; 3] = ["nvml", "cuda", "rocm_smi"];

/// The fields of a GPU that are null because nothing tells them.
fn unknown_fields(gpu: &GpuRow, orders: &Orders) -> Vec<UntoldRow> {
    let library = match gpu.vendor.as_deref() {
        Some("nvidia") => "NVML",
        Some("amd") => "the attributes of amdgpu, or ROCm SMI",
        _ => "the driver's own tools",
    };
    let on_bus = gpu.pci.is_some();
    let (name, architecture) = if gpu.key == "dxg" {
        (library, library)
    } else {
        ("an up-to-date `pci.ids`", "the maker's tables")
    };
    let driver = gpu.driver.as_deref().unwrap_or_default();
    let in_kernel = matches!(driver, "amdgpu" | "i915" | "xe" | "nouveau");
    let is_of = |vendor: &str| gpu.vendor.as_deref() == Some(vendor);
    [
        ("vendor", gpu.vendor.is_none(), "`lspci -nn`"),
        ("id", gpu.id.is_none() && on_bus, "`lspci -nn`"),
        ("name", gpu.name.is_none(), name),
        ("architecture", gpu.architecture.is_none(), architecture),
        ("target", gpu.target.is_none(), library),
        ("memory_bytes", gpu.memory_bytes.is_none(), library),
        ("driver", gpu.driver.is_none(), "`lspci -nnk`"),
        (
            "flavour",
            gpu.flavour.is_none() && matches!(driver, "nvidia" | "amdgpu"),
            "`modinfo` of the loaded module",
        ),
        ("integrated", gpu.integrated.is_none() && on_bus, library),
        (
            "asleep",
            gpu.asleep.is_none() && on_bus,
            "`power/runtime_status` of the device",
        ),
        (
            "link",
            gpu.link.is_none() && on_bus && gpu.integrated != Some(true),
            "`lspci -vv`",
        ),
        (
            "index.drm_card",
            gpu.index.drm_card.is_none() && in_kernel,
            "`ls -l /dev/dri/by-path`",
        ),
        (
            "index.render",
            gpu.index.render.is_none() && in_kernel,
            "`ls -l /dev/dri/by-path`",
        ),
        (
            "index.nvml",
            gpu.index.nvml.is_none() && is_of("nvidia"),
            library,
        ),
        (
            "index.cuda",
            orders.cuda.is_none() && is_of("nvidia"),
            "a program that lists CUDA's devices; with `CUDA_DEVICE_ORDER=PCI_BUS_ID` their order is that of `nvidia-smi`",
        ),
        (
            "index.hip",
            orders.hip.is_none() && is_of("amd"),
            "`rocminfo`",
        ),
    ]
    .into_iter()
    .filter(|(_, unknown, _)| *unknown)
    .map(|(field, _, would_tell)| UntoldRow {
        what: format!("gpu {} {field}", gpu.key),
        why: "nothing that was read says it".to_owned(),
        would_tell: would_tell.to_owned(),
    })
    .collect()
}

/// Where no GPU is seen: why there may be none.
fn hint(view: &View) -> Option<String> {
    if !view.gpus.is_empty() || !view.gpus_whole {
        return None;
    }
    if let Seen::Got(Place::Wsl(_)) = view.place {
        return Some("under WSL the GPU shows as `/dev/dxg`, which is not there".to_owned());
    }
    if view.in_container() {
        return Some("this is a container: a GPU must be passed in when it is started".to_owned());
    }
    if let Some(product) = product_with_gpu(view.facts) {
        return Some(format!(
            "{product} has GPUs when they are attached: look at the instance type or the firmware setup"
        ));
    }
    view.hypervisor().map(|hypervisor| {
        format!("this machine runs on {hypervisor}: a GPU must be passed through to it")
    })
}

/// Products that are sold with GPUs: a machine of that name that shows none lacks something.
fn product_with_gpu(facts: &Facts) -> Option<String> {
    let product = facts.dmi.got()?.product.got()?;
    // Instance types of clouds and NVIDIA's own systems.
    const MARKS: [&str; 12] = [
        "DGX", "HGX", "p3.", "p3dn.", "p4d.", "p4de.", "p5.", "p5e.", "g4dn.", "g5.", "g6.", "g6e.",
    ];
    MARKS
        .iter()
        .any(|mark| product.starts_with(mark) || product.contains(&format!("NVIDIA {mark}")))
        .then(|| product.clone())
}
