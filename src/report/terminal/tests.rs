//! Made-up reports, rendered and read.

use super::*;
use crate::check::Link;
use crate::finding::{Confidence, Evidence};
use crate::fix::{Fix, Risk};
use crate::report::page::{words, wrap};
use crate::report::{
    Counts, FindingRow, FoldedRow, GpuRow, HostLine, IndexRow, LinkRow, NotGpuRow,
};

fn host() -> HostLine {
    HostLine {
        os: Some("Ubuntu 24.04.3 LTS".to_owned()),
        os_id: Some("ubuntu".to_owned()),
        kernel: Some("6.8.0-49-generic".to_owned()),
        machine: Some("x86_64".to_owned()),
        cpu: Some("AMD Ryzen 9 7950X 16-Core Processor".to_owned()),
        cpus: Some(32),
        memory_bytes: Some(67_108_864_000),
        product: Some("ASUS ProArt X670E-CREATOR WIFI".to_owned()),
        place: Some("host".to_owned()),
        hypervisor: None,
        secure_boot: Some("off".to_owned()),
        user: Some("uid 1000 (USER)".to_owned()),
    }
}

fn empty() -> Report {
    Report {
        schema: 1,
        version: "0.1.0".to_owned(),
        tables: "2026-11-30".to_owned(),
        origin: "live".to_owned(),
        clock: None,
        host: host(),
        gpus: Vec::new(),
        gpus_whole: true,
        not_gpus: Vec::new(),
        versions: Vec::new(),
        readiness: Vec::new(),
        findings: Vec::new(),
        verdicts: Vec::new(),
        untold: Vec::new(),
        next_boot: None,
        hint: None,
        counts: Counts::default(),
        facts: None,
    }
}

fn gpu(key: &str) -> GpuRow {
    GpuRow {
        key: key.to_owned(),
        pci: Some(key.to_owned()),
        vendor: Some("nvidia".to_owned()),
        id: Some("10de:2684".to_owned()),
        name: Some("GeForce RTX 4090".to_owned()),
        architecture: Some("Ada Lovelace".to_owned()),
        target: Some("sm_89".to_owned()),
        memory_bytes: Some(25_757_220_864),
        driver: Some("nvidia".to_owned()),
        driver_version: Some("580.95.05".to_owned()),
        flavour: Some("open".to_owned()),
        integrated: Some(false),
        asleep: Some(false),
        passed_in: None,
        lost: false,
        link: Some(LinkRow {
            speed: Some("2.5 GT/s PCIe".to_owned()),
            width: Some(16),
            max_speed: Some("16.0 GT/s PCIe".to_owned()),
            max_width: Some(16),
            hop: key.to_owned(),
        }),
        index: IndexRow {
            nvml: Some(0),
            cuda: Some(0),
            hip: None,
            drm_card: Some("card1".to_owned()),
            render: Some("renderD128".to_owned()),
            kfd_nodes: Vec::new(),
        },
    }
}

fn mi300x(number: u32) -> GpuRow {
    let bus = [0x05, 0x15, 0x65, 0x75, 0x85, 0x95, 0xe5, 0xf5][number as usize];
    GpuRow {
        vendor: Some("amd".to_owned()),
        id: Some("1002:74a1".to_owned()),
        name: Some("Instinct MI300X".to_owned()),
        architecture: Some("CDNA 3".to_owned()),
        target: Some("gfx942".to_owned()),
        memory_bytes: Some(206_141_652_992),
        driver: Some("amdgpu".to_owned()),
        driver_version: Some("6.12.12".to_owned()),
        flavour: Some("dkms".to_owned()),
        link: None,
        index: IndexRow {
            drm_card: Some(format!("card{}", number + 1)),
            render: Some(format!("renderD{}", 128 + number)),
            kfd_nodes: vec![number + 2],
            ..IndexRow::default()
        },
        ..gpu(&format!("0000:{bus:02x}:00.0"))
    }
}

fn ready(stack: &str, state: State, because: &str) -> Readiness {
    Readiness {
        stack: stack.to_owned(),
        state,
        broken_at: (state == State::Broken).then_some(Link::Driver),
        because: because.to_owned(),
        finding: None,
        doubt: false,
        gpus: Vec::new(),
    }
}

fn fix(words: &str, commands: &[&str]) -> Fix {
    Fix {
        words: words.to_owned(),
        commands: commands.iter().map(ToString::to_string).collect(),
        needs_root: true,
        after: Some("reboot".to_owned()),
        risk: Risk::Safe,
        confirm: "`nvidia-smi` lists the GPU".to_owned(),
    }
}

fn finding_row(check: &str, subject: &str, severity: Severity, title: &str) -> FindingRow {
    FindingRow {
        check: check.to_owned(),
        cause: None,
        severity,
        confidence: Confidence::Certain,
        link: Link::Driver,
        subject: subject.to_owned(),
        title: title.to_owned(),
        evidence: Vec::new(),
        why: "No program can compute on the GPU until a driver drives it".to_owned(),
        fixes: Vec::new(),
        folded: Vec::new(),
    }
}

fn seen(source: &str, says: &str) -> Evidence {
    Evidence {
        source: source.to_owned(),
        says: says.to_owned(),
    }
}

fn unanswered(what: &str, why: &str, would_tell: &str) -> UntoldRow {
    UntoldRow {
        what: what.to_owned(),
        why: why.to_owned(),
        would_tell: would_tell.to_owned(),
    }
}

fn healthy() -> Report {
    Report {
        gpus: vec![gpu("0000:01:00.0")],
        readiness: vec![
            ready("cuda", State::Ready, ""),
            ready("rocm", State::NotSetUp, "no AMD GPU"),
        ],
        counts: Counts {
            fine: 17,
            not_here: 9,
            ..Counts::default()
        },
        ..empty()
    }
}

fn no_driver() -> Report {
    let mut row = finding_row(
        "nvidia-driver-not-installed",
        "gpu 0000:01:00.0",
        Severity::Error,
        "No NVIDIA driver is installed",
    );
    row.evidence = vec![
        seen(
            "/sys/bus/pci/devices/0000:01:00.0/driver",
            "link to nouveau",
        ),
        seen(
            "/lib/modules/6.8.0-49-generic",
            "no nvidia.ko in any of its folders, and neither in /var/lib/dkms nor in /usr/src",
        ),
    ];
    row.fixes = vec![fix(
        "Install the NVIDIA driver of your distribution",
        &["sudo apt update", "sudo apt install nvidia-driver-580-open"],
    )];
    row.folded = vec![
        FoldedRow {
            check: "nouveau-active".to_owned(),
            subject: "gpu 0000:01:00.0".to_owned(),
            was: "found".to_owned(),
            says: "0000:01:00.0 is driven by nouveau".to_owned(),
        },
        FoldedRow {
            check: "nvidia-nodes-missing".to_owned(),
            subject: "gpu 0000:01:00.0".to_owned(),
            was: "cannot_tell".to_owned(),
            says: "the module is not loaded".to_owned(),
        },
    ];
    Report {
        gpus: vec![GpuRow {
            driver: Some("nouveau".to_owned()),
            driver_version: None,
            flavour: None,
            memory_bytes: None,
            index: IndexRow {
                drm_card: Some("card1".to_owned()),
                render: Some("renderD128".to_owned()),
                ..IndexRow::default()
            },
            ..gpu("0000:01:00.0")
        }],
        readiness: vec![
            ready("cuda", State::Broken, "no NVIDIA driver is installed"),
            ready("rocm", State::NotSetUp, "no AMD GPU"),
            ready("vulkan", State::Unknown, "the Vulkan library was not asked"),
        ],
        findings: vec![row],
        untold: vec![unanswered(
            "memory of GPU 0000:01:00.0",
            "nouveau does not show it",
            "the NVIDIA driver",
        )],
        counts: Counts {
            errors: 1,
            fine: 6,
            cannot_tell: 1,
            folded: 2,
            ..Counts::default()
        },
        ..empty()
    }
}

/// Eight GPUs whose nodes the user may not open.
fn eight_denied() -> Report {
    let gpus: Vec<GpuRow> = (0..8).map(mi300x).collect();
    let findings = gpus
        .iter()
        .map(|gpu| {
            let render = gpu.index.render.clone().unwrap_or_default();
            let mut row = finding_row(
                "gpu-device-permission-denied",
                &format!("gpu {}", gpu.key),
                Severity::Error,
                &format!("USER may not open the render node of {}", gpu.key),
            );
            row.evidence = vec![
                seen(&format!("/dev/dri/{render}"), "0660 root:render"),
                seen("groups of USER", "USER, adm, sudo"),
            ];
            row.fixes = vec![Fix {
                words: "Join the group that owns the nodes".to_owned(),
                commands: vec!["sudo usermod -aG render USER".to_owned()],
                needs_root: true,
                after: Some("new login".to_owned()),
                risk: Risk::Safe,
                confirm: "`id` shows `render`".to_owned(),
            }];
            row
        })
        .collect();
    Report {
        host: HostLine {
            product: Some("Supermicro AS-8125GS-TNMR2".to_owned()),
            cpu: Some("AMD EPYC 9654 96-Core Processor".to_owned()),
            cpus: Some(384),
            memory_bytes: Some(2_434_000_000_000),
            ..host()
        },
        gpus,
        not_gpus: vec![NotGpuRow {
            pci: "0000:c4:00.0".to_owned(),
            id: Some("1a03:2000".to_owned()),
            name: Some("ASPEED Graphics Family".to_owned()),
            kind: "server management graphics".to_owned(),
        }],
        readiness: vec![ready(
            "rocm",
            State::Broken,
            "USER may not open the render nodes",
        )],
        findings,
        counts: Counts {
            errors: 8,
            fine: 40,
            ..Counts::default()
        },
        ..empty()
    }
}

fn no_gpu_with_hint() -> Report {
    Report {
        host: HostLine {
            product: Some("QEMU Standard PC (Q35 + ICH9, 2009)".to_owned()),
            hypervisor: Some("KVM".to_owned()),
            ..host()
        },
        not_gpus: vec![NotGpuRow {
            pci: "0000:00:01.0".to_owned(),
            id: Some("1234:1111".to_owned()),
            name: None,
            kind: "virtual display".to_owned(),
        }],
        readiness: vec![
            ready("cuda", State::NotSetUp, "no NVIDIA GPU"),
            ready("vulkan", State::NotSetUp, "no GPU"),
        ],
        next_boot: None,
        hint: Some(
            "this is a virtual machine (KVM): a GPU of the host is seen only when it is passed through"
                .to_owned(),
        ),
        counts: Counts {
            not_here: 26,
            ..Counts::default()
        },
        ..empty()
    }
}

const HOSTILE: &str = "\u{1b}[31mred\u{1b}]0;owned\u{7}\nsecond line\r\u{202e}txet\u{9b}2J";

fn hostile() -> Report {
    let mut row = finding_row(HOSTILE, HOSTILE, Severity::Warning, HOSTILE);
    row.why = HOSTILE.to_owned();
    row.evidence = vec![seen(HOSTILE, HOSTILE), seen("/x", &"A".repeat(100_000))];
    row.fixes = vec![Fix {
        words: HOSTILE.to_owned(),
        commands: vec![HOSTILE.to_owned()],
        needs_root: false,
        after: Some(HOSTILE.to_owned()),
        risk: Risk::DataLoss,
        confirm: HOSTILE.to_owned(),
    }];
    row.folded = vec![FoldedRow {
        check: HOSTILE.to_owned(),
        subject: HOSTILE.to_owned(),
        was: "found".to_owned(),
        says: HOSTILE.to_owned(),
    }];
    let text = || Some(HOSTILE.to_owned());
    Report {
        version: HOSTILE.to_owned(),
        tables: HOSTILE.to_owned(),
        origin: HOSTILE.to_owned(),
        clock: text(),
        host: HostLine {
            os: text(),
            os_id: text(),
            kernel: text(),
            machine: text(),
            cpu: text(),
            product: text(),
            place: text(),
            hypervisor: text(),
            secure_boot: text(),
            user: text(),
            ..HostLine::default()
        },
        gpus: vec![GpuRow {
            key: HOSTILE.to_owned(),
            pci: Some(format!("{HOSTILE}x")),
            vendor: text(),
            id: text(),
            name: text(),
            architecture: text(),
            target: text(),
            memory_bytes: Some(0),
            driver: text(),
            driver_version: text(),
            flavour: text(),
            integrated: None,
            asleep: None,
            passed_in: None,
            lost: false,
            link: Some(LinkRow {
                speed: text(),
                width: Some(0),
                max_speed: Some("Unknown".to_owned()),
                max_width: Some(255),
                hop: HOSTILE.to_owned(),
            }),
            index: IndexRow {
                drm_card: text(),
                render: text(),
                ..IndexRow::default()
            },
        }],
        not_gpus: vec![NotGpuRow {
            pci: HOSTILE.to_owned(),
            id: text(),
            name: text(),
            kind: HOSTILE.to_owned(),
        }],
        readiness: vec![ready(HOSTILE, State::Unknown, HOSTILE)],
        findings: vec![row],
        verdicts: vec![VerdictRow {
            check: HOSTILE.to_owned(),
            subject: HOSTILE.to_owned(),
            verdict: HOSTILE.to_owned(),
            says: text(),
            by: text(),
            was: text(),
            cause: text(),
            severity: None,
        }],
        untold: vec![unanswered(HOSTILE, HOSTILE, HOSTILE)],
        next_boot: None,
        hint: text(),
        ..empty()
    }
}

/// A root that shows next to nothing.
fn all_unknown() -> Report {
    Report {
        origin: "root /mnt/broken".to_owned(),
        host: HostLine::default(),
        gpus_whole: false,
        readiness: vec![
            ready("cuda", State::Unknown, "the PCI bus was not recorded"),
            ready("vulkan", State::Unknown, "the PCI bus was not recorded"),
        ],
        untold: vec![
            unanswered(
                "which GPUs are here",
                "not recorded here",
                "`/sys/bus/pci/devices`",
            ),
            unanswered("distribution", "not recorded here", "`/etc/os-release`"),
        ],
        counts: Counts {
            cannot_tell: 20,
            ..Counts::default()
        },
        ..empty()
    }
}

fn unknown_gpu() -> Report {
    Report {
        gpus: vec![GpuRow {
            vendor: None,
            id: None,
            name: None,
            architecture: None,
            target: None,
            memory_bytes: None,
            driver: None,
            driver_version: None,
            flavour: None,
            integrated: None,
            asleep: None,
            link: None,
            index: IndexRow::default(),
            ..gpu("0000:01:00.0")
        }],
        gpus_whole: false,
        ..all_unknown()
    }
}

fn wsl() -> Report {
    Report {
        host: HostLine {
            kernel: Some("5.15.167.4-microsoft-standard-WSL2".to_owned()),
            place: Some("wsl 2".to_owned()),
            product: None,
            secure_boot: None,
            ..host()
        },
        gpus: vec![GpuRow {
            key: "dxg".to_owned(),
            pci: None,
            id: None,
            name: None,
            architecture: None,
            target: None,
            memory_bytes: None,
            driver: None,
            driver_version: None,
            flavour: None,
            link: None,
            index: IndexRow::default(),
            ..gpu("dxg")
        }],
        readiness: vec![ready(
            "cuda",
            State::Unknown,
            "everything that files show is right, the library was not asked",
        )],
        untold: vec![unanswered(
            "name, memory and target of GPU dxg",
            "WSL hides the bus",
            "`nvidia-smi -L`",
        )],
        counts: Counts {
            fine: 4,
            cannot_tell: 1,
            ..Counts::default()
        },
        ..empty()
    }
}

fn hybrid_laptop() -> Report {
    let mut note = finding_row(
        "nvidia-driver-not-installed",
        "gpu 0000:01:00.0",
        Severity::Note,
        "No NVIDIA driver is installed; the card runs on nouveau",
    );
    note.confidence = Confidence::Likely;
    note.evidence = vec![seen("/lib/modules/6.12.1-arch1-1", "no nvidia.ko")];
    note.why = "Only programs that want CUDA miss it; the desktop does not".to_owned();
    note.fixes = vec![
        fix(
            "Install the open NVIDIA driver",
            &["sudo pacman -S nvidia-open"],
        ),
        Fix {
            words: "Leave it as it is where nobody wants CUDA".to_owned(),
            commands: Vec::new(),
            needs_root: false,
            after: None,
            risk: Risk::Safe,
            confirm: String::new(),
        },
    ];
    Report {
        host: HostLine {
            os: Some("Arch Linux".to_owned()),
            kernel: Some("6.12.1-arch1-1".to_owned()),
            product: Some("LENOVO Legion Slim 5 16IRH8".to_owned()),
            cpu: Some("13th Gen Intel(R) Core(TM) i7-13700H".to_owned()),
            cpus: Some(20),
            ..host()
        },
        gpus: vec![
            GpuRow {
                vendor: Some("intel".to_owned()),
                id: Some("8086:a7a0".to_owned()),
                name: Some("Iris Xe Graphics".to_owned()),
                architecture: Some("Xe-LP".to_owned()),
                target: None,
                memory_bytes: None,
                driver: Some("i915".to_owned()),
                driver_version: None,
                flavour: Some("in-tree".to_owned()),
                integrated: Some(true),
                link: None,
                index: IndexRow {
                    drm_card: Some("card0".to_owned()),
                    render: Some("renderD128".to_owned()),
                    ..IndexRow::default()
                },
                ..gpu("0000:00:02.0")
            },
            GpuRow {
                id: Some("10de:28e0".to_owned()),
                name: Some("AD107M [GeForce RTX 4060 Max-Q / Mobile]".to_owned()),
                memory_bytes: None,
                driver: Some("nouveau".to_owned()),
                driver_version: None,
                flavour: Some("in-tree".to_owned()),
                asleep: Some(true),
                index: IndexRow {
                    drm_card: Some("card1".to_owned()),
                    render: Some("renderD129".to_owned()),
                    ..IndexRow::default()
                },
                ..gpu("0000:01:00.0")
            },
        ],
        readiness: vec![
            ready(
                "cuda",
                State::NotSetUp,
                "no NVIDIA driver is installed; `sudo pacman -S nvidia-open` would",
            ),
            ready(
                "level-zero",
                State::NotSetUp,
                "`sudo pacman -S intel-compute-runtime` would set it up",
            ),
            ready("vulkan", State::Unknown, "the Vulkan library was not asked"),
        ],
        findings: vec![note],
        untold: vec![
            unanswered(
                "memory of GPU 0000:01:00.0",
                "the GPU is asleep and was not woken",
                "`gpucheck --wake`",
            ),
            unanswered(
                "link of GPU 0000:01:00.0",
                "the GPU is asleep and was not woken",
                "`gpucheck --wake`",
            ),
        ],
        counts: Counts {
            notes: 1,
            fine: 12,
            cannot_tell: 2,
            ..Counts::default()
        },
        ..empty()
    }
}

fn container() -> Report {
    Report {
        origin: "replay of a live capture by gpucheck 0.1.0".to_owned(),
        clock: Some("2026-11-30T12:00:00Z".to_owned()),
        host: HostLine {
            place: Some("container (docker)".to_owned()),
            product: None,
            secure_boot: None,
            ..host()
        },
        gpus: vec![
            GpuRow {
                passed_in: Some(true),
                ..gpu("0000:01:00.0")
            },
            GpuRow {
                passed_in: Some(false),
                driver: Some("nvidia".to_owned()),
                index: IndexRow::default(),
                ..gpu("0000:41:00.0")
            },
        ],
        readiness: vec![Readiness {
            gpus: vec!["0000:01:00.0".to_owned()],
            ..ready("cuda", State::Partial, "0000:41:00.0 was not passed in")
        }],
        counts: Counts {
            fine: 11,
            ..Counts::default()
        },
        ..empty()
    }
}

fn samples() -> Vec<(&'static str, Report)> {
    vec![
        ("healthy", healthy()),
        ("no-driver", no_driver()),
        ("eight-denied", eight_denied()),
        ("no-gpu", no_gpu_with_hint()),
        ("hostile", hostile()),
        ("all-unknown", all_unknown()),
        ("unknown-gpu", unknown_gpu()),
        ("wsl", wsl()),
        ("hybrid-laptop", hybrid_laptop()),
        ("container", container()),
    ]
}

fn render(report: &Report, style: &Style, verbosity: Verbosity) -> String {
    let mut out = Vec::new();
    let took = [("pci".to_owned(), Duration::from_micros(1234))];
    write(report, style, verbosity, &took, &mut out).expect("a vector takes all");
    String::from_utf8(out).expect("the report is UTF-8")
}

fn normal(report: &Report) -> String {
    render(report, &Style::plain(), Verbosity::Normal)
}

fn start(text: &str, lines: usize) -> String {
    text.lines().take(lines).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_healthy_machine_is_short_and_says_so() {
    let text = normal(&healthy());
    assert!(text.lines().count() <= 12, "{text}");
    let top = start(&text, 3);
    assert!(
        top.contains("ok CUDA: looks ready, no kernel was run"),
        "{top}"
    );
    assert!(
        text.contains("NVIDIA GeForce RTX 4090 at 0000:01:00.0"),
        "{text}"
    );
    assert!(
        text.contains("Ada Lovelace, sm_89, 24.0 GiB, PCIe 4.0 x16 (now 1.0)"),
        "{text}"
    );
    assert!(text.contains("driver nvidia 580.95.05 (open)"), "{text}");
    assert!(text.contains(", NVML 0, CUDA 0, card1,"), "{text}");
    assert!(
        text.contains("ok Nothing wrong was found; answers: 17 fine"),
        "{text}"
    );
    assert!(
        !text.contains("ROCm"),
        "a stack without hardware is no news\n{text}"
    );
}

#[test]
fn a_link_of_which_less_is_known_now_is_no_slower_link() {
    let with = |width: u32, speed: &str| {
        let mut report = healthy();
        let link = report.gpus[0].link.as_mut().expect("a link");
        link.width = Some(width);
        link.speed = Some(speed.to_owned());
        normal(&report)
    };
    // A GPU that does not answer reads as 63 lanes.
    let gone = with(63, "16.0 GT/s PCIe");
    assert!(gone.contains(", PCIe 4.0 x16, id"), "{gone}");
    assert!(with(63, "2.5 GT/s PCIe").contains("PCIe 4.0 x16 (now 1.0)"));
    assert!(with(8, "16.0 GT/s PCIe").contains("PCIe 4.0 x16 (now 4.0 x8)"));
}

#[test]
fn the_newcomer_reads_the_verdict_in_three_lines() {
    let top = start(&normal(&no_driver()), 3);
    assert!(
        top.contains("CUDA: not ready - no NVIDIA driver is installed"),
        "{top}"
    );
}

#[test]
fn a_finding_has_all_its_parts() {
    let text = normal(&no_driver());
    for part in [
        "1. error: No NVIDIA driver is installed\n",
        "   nvidia-driver-not-installed, GPU 0000:01:00.0\n",
        "/sys/bus/pci/devices/0000:01:00.0/driver: link to nouveau\n",
        "why      No program can compute",
        "fix      Install the NVIDIA driver of your distribution (needs root, then\n",
        "\n              sudo apt install nvidia-driver-580-open\n",
        "check    `nvidia-smi` lists the GPU\n",
        "explains nouveau-active: 0000:01:00.0 is driven by nouveau\n",
        "why 1 question has no answer (`-v` shows more)\n",
        "gpucheck explain nvidia-driver-not-installed",
    ] {
        assert!(text.contains(part), "{part:?} is missing in\n{text}");
    }
}

#[test]
fn verbose_shows_the_questions_that_a_finding_leaves_open() {
    let text = render(&no_driver(), &Style::plain(), Verbosity::Verbose);
    let part = "nvidia-nodes-missing: cannot be told: the module is not loaded\n";
    assert!(text.contains(part), "{text}");
    assert!(!text.contains("has no answer"), "{text}");
}

#[test]
fn what_mends_two_findings_is_said_once() {
    let mut report = no_driver();
    let mut second = report.findings[0].clone();
    second.check = "another-check".to_owned();
    second.title = "Another fault".to_owned();
    report.findings.push(second);
    let text = normal(&report);
    assert_eq!(text.matches("sudo apt install").count(), 1, "{text}");
    assert!(text.contains("   fix      as for finding 1\n"), "{text}");
}

#[test]
fn a_note_without_a_fix_needs_none() {
    let mut report = no_driver();
    report.findings[0].fixes.clear();
    report.findings[0].severity = Severity::Note;
    let text = normal(&report);
    assert!(!text.contains("fix "), "{text}");
}

#[test]
fn a_question_about_several_gpus_is_asked_once() {
    let mut report = eight_denied();
    let keys: Vec<String> = report.gpus.iter().map(|gpu| gpu.key.clone()).collect();
    for key in &keys {
        let what = format!("gpu {key} memory_bytes");
        report
            .untold
            .push(unanswered(&what, "nobody says it", "NVML"));
    }
    for key in &keys[..2] {
        let what = format!("a-check (gpu {key})");
        report
            .untold
            .push(unanswered(&what, "not recorded", "`ls`"));
    }
    let what = "a-check (stack cuda)";
    report.untold.push(unanswered(what, "not recorded", "`ls`"));
    let text = normal(&report);
    assert!(
        text.contains("?? memory of all 8 GPUs: nobody says it"),
        "{text}"
    );
    assert!(
        text.contains("?? a-check (GPUs 05:00.0 15:00.0), a-check (CUDA): not recorded"),
        "{text}"
    );
}

#[test]
fn a_link_that_is_half_known_does_not_differ() {
    let mut report = healthy();
    let link = report.gpus[0].link.as_mut().expect("a link");
    link.speed = link.max_speed.clone();
    link.width = None;
    let text = normal(&report);
    assert!(text.contains("PCIe 4.0 x16, "), "{text}");
}

#[test]
fn a_gpu_that_is_gone_is_named_by_its_address() {
    let mut report = healthy();
    report.gpus[0].key = "proc:0000:01:00.0".to_owned();
    report.gpus[0].pci = None;
    let text = normal(&report);
    assert!(
        text.contains(" at 0000:01:00.0 (gone from the bus)"),
        "{text}"
    );
}

#[test]
fn eight_same_findings_are_one_in_print() {
    let report = eight_denied();
    let text = normal(&report);
    assert_eq!(
        text.matches("may not open the render node of").count(),
        1,
        "{text}"
    );
    assert!(text.contains("(and 7 more GPUs)"), "{text}");
    assert!(text.contains("!! 1 error"), "{text}");
    assert!(text.contains("all 8 GPUs"), "{text}");
    assert!(text.contains("`-v` shows the 7 others"), "{text}");
    assert_eq!(text.matches("sudo usermod").count(), 1, "{text}");
    assert_eq!(text.matches("8 x AMD Instinct MI300X").count(), 1, "{text}");
    assert!(
        text.contains("0000:f5:00.0  card8, renderD135, KFD node 9"),
        "{text}"
    );
    let verbose = render(&report, &Style::plain(), Verbosity::Verbose);
    assert!(
        verbose.contains("/dev/dri/renderD135: 0660 root:render"),
        "{verbose}"
    );
    assert!(verbose.contains("GPUs 05:00.0 15:00.0"), "{verbose}");
}

#[test]
fn gpus_without_numbers_share_a_line() {
    let mut report = eight_denied();
    for gpu in &mut report.gpus {
        gpu.index = IndexRow::default();
    }
    let text = normal(&report);
    let line = "          0000:05:00.0, 0000:15:00.0, 0000:65:00.0,";
    assert!(text.contains(line), "{text}");
}

#[test]
fn findings_that_differ_stay_apart() {
    let mut report = eight_denied();
    report.findings[3].title = "Another fault".to_owned();
    report.findings[4].severity = Severity::Warning;
    report.findings[5].fixes.clear();
    let text = normal(&report);
    assert!(text.contains("4. error: "), "{text}");
    assert!(!text.contains("5. "), "{text}");
    assert!(text.contains("(and 4 more GPUs)"), "{text}");
    assert!(
        text.contains("GPUs 05:00.0 15:00.0 65:00.0 e5:00.0 f5:00.0"),
        "{text}"
    );
}

#[test]
fn commands_of_their_own_are_all_printed() {
    let mut report = eight_denied();
    for row in &mut report.findings {
        let key = row.subject.trim_start_matches("gpu ").to_owned();
        row.fixes[0].commands = vec![
            "cd /sys/bus/pci/drivers/amdgpu".to_owned(),
            format!("echo {key} > bind"),
        ];
    }
    let text = normal(&report);
    assert_eq!(text.matches("> bind").count(), 8, "{text}");
    assert_eq!(text.matches("cd /sys").count(), 1, "{text}");
}

#[test]
fn no_gpu_is_one_sentence_and_a_hint() {
    let text = normal(&no_gpu_with_hint());
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[1], "-- No GPU was found on this machine", "{text}");
    assert!(
        lines[2].starts_with("   hint: this is a virtual machine (KVM)"),
        "{text}"
    );
    assert!(!text.contains("not set up"), "{text}");
    assert!(
        text.contains("Not a GPU 1234:1111 at 0000:00:01.0 (virtual display)"),
        "{text}"
    );
}

#[test]
fn a_bus_that_was_not_listed_is_not_a_machine_without_gpus() {
    let text = normal(&all_unknown());
    assert!(!text.contains("No GPU"), "{text}");
    assert!(
        text.contains("?? Which GPUs are here could not be told"),
        "{text}"
    );
    assert!(text.contains("too little could be looked at"), "{text}");
    assert!(!text.contains("ok "), "{text}");
}

#[test]
fn unknown_values_are_no_numbers() {
    let text = normal(&unknown_gpu());
    assert!(text.contains("GPU, name unknown at 0000:01:00.0"), "{text}");
    assert!(text.contains("driver unknown"), "{text}");
    assert!(
        !text.contains("0 GiB") && !text.contains("0 MiB") && !text.contains("x0"),
        "{text}"
    );
    assert!(text.contains("There may be more GPUs"), "{text}");
}

#[test]
fn hostile_text_is_shown_and_not_obeyed() {
    for verbosity in [Verbosity::Quiet, Verbosity::Normal, Verbosity::Verbose] {
        let text = render(&hostile(), &Style::plain(), verbosity);
        let bad = |character: &char| {
            (character.is_control() && *character != '\n')
                || ('\u{202a}'..='\u{202e}').contains(character)
        };
        assert_eq!(text.chars().find(bad), None, "{text:?}");
        assert!(!text.contains("\nsecond"), "{text}");
        assert!(text.len() < 30_000, "{}", text.len());
    }
    assert!(normal(&hostile()).contains("more characters)"));
}

#[test]
fn text_fits_the_width_and_commands_stay_whole() {
    let command = format!("sudo dnf install {}", "kernel-devel-matched ".repeat(12));
    for width in [24, 40, 80, 120] {
        let style = Style {
            width,
            ..Style::plain()
        };
        for (name, mut report) in samples() {
            for row in &mut report.findings {
                row.fixes = vec![fix(
                    "Install the headers of the running kernel",
                    &[&command],
                )];
            }
            let text = render(&report, &style, Verbosity::Normal);
            for line in text.lines() {
                // A label, a word that is too long to fit, and what marks the row.
                let one_word =
                    words(line).len() <= 2 || name == "hostile" || line.contains("`gpucheck ");
                let fits = line.width() <= width || line.trim() == command.trim() || one_word;
                assert!(fits, "{name} at {width}: {line}");
            }
            let whole = report.findings.is_empty() || text.contains(command.trim());
            assert!(whole, "{name} at {width}\n{text}");
        }
    }
}

#[test]
fn a_command_in_backticks_is_not_broken() {
    let lines = wrap(
        "see `nvidia-smi -L` or (`id -nG`), not ` alone at the end",
        12,
        12,
    );
    let expected = [
        "see",
        "`nvidia-smi -L`",
        "or",
        "(`id -nG`),",
        "not ` alone",
        "at the end",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn no_known_fix_is_said() {
    let mut report = no_driver();
    report.findings[0].fixes.clear();
    assert!(normal(&report).contains("fix      no fix is known"));
}

#[test]
fn quiet_holds_findings_and_the_verdict_alone() {
    let text = render(&healthy(), &Style::plain(), Verbosity::Quiet);
    assert_eq!(text, "ok Nothing wrong was found; answers: 17 fine\n");
    let text = render(&no_driver(), &Style::plain(), Verbosity::Quiet);
    assert!(text.starts_with("1. error: "), "{text}");
    assert!(
        text.ends_with("!! 1 error; answers: 6 fine, 1 not told, 2 explained by a finding\n"),
        "{text}"
    );
}

#[test]
fn verbose_shows_every_answer_and_what_each_probe_took() {
    let mut report = healthy();
    report.verdicts = vec![VerdictRow {
        check: "nouveau-active".to_owned(),
        subject: "gpu 0000:01:00.0".to_owned(),
        verdict: "fine".to_owned(),
        says: Some("the driver is nvidia".to_owned()),
        by: None,
        was: None,
        cause: None,
        severity: None,
    }];
    let text = render(&report, &Style::plain(), Verbosity::Verbose);
    assert!(
        text.contains("ok nouveau-active (GPU 0000:01:00.0): the driver is nvidia"),
        "{text}"
    );
    assert!(text.contains("pci      1.2 ms"), "{text}");
    assert!(text.contains("tables of 2026-11-30"), "{text}");
}

#[test]
fn what_could_not_be_told_is_short_unless_asked_for() {
    let mut report = healthy();
    for number in 0..40 {
        let why = format!("reason {}", number % 10);
        report
            .untold
            .push(unanswered(&format!("question {number}"), &why, "root"));
    }
    let text = normal(&report);
    assert!(text.contains("Could not be told\n"), "{text}");
    assert!(
        text.contains("question 0, question 10 and 2 more: reason 0; would tell: root"),
        "{text}"
    );
    assert!(
        text.contains("and 28 more, `gpucheck -v` shows all"),
        "{text}"
    );
    let verbose = render(&report, &Style::plain(), Verbosity::Verbose);
    assert!(verbose.contains("question 39"), "{verbose}");
}

#[test]
fn a_bug_in_one_section_loses_no_other() {
    let style = Style::plain();
    let broken: Section = boxed(|_| panic!("on purpose"));
    let text = rendered("the findings", &style, &broken);
    assert!(text.contains("gpucheck has a bug: the findings"), "{text}");
}

#[test]
fn memory_is_in_gib() {
    assert_eq!(gib(25_757_220_864), "24.0 GiB");
    assert_eq!(gib(536_870_912), "0.5 GiB");
    assert_eq!(gib(16 << 20), "16 MiB");
    assert_eq!(gib(u64::MAX), "17179869184.0 GiB");
}

/// With `GPUCHECK_SAMPLES=DIR` the reports are written there, for whoever judges their looks.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "a test names its own folder; no machine is asked"
)]
fn colour_adds_nothing_to_read() {
    let style = Style {
        colour: true,
        unicode: true,
        width: 80,
    };
    let folder = std::env::var("GPUCHECK_SAMPLES").ok();
    for (name, report) in samples() {
        let painted = render(&report, &style, Verbosity::Normal);
        if let Some(folder) = &folder {
            std::fs::write(format!("{folder}/{name}.txt"), &painted).expect("the folder exists");
        }
        let plain = Style {
            colour: false,
            ..style
        };
        let mut bare = String::new();
        let mut rest = painted.as_str();
        while let Some(at) = rest.find('\u{1b}') {
            bare += &rest[..at];
            rest = rest[at..].split_once('m').map_or("", |(_, rest)| rest);
        }
        bare += rest;
        assert_eq!(bare, render(&report, &plain, Verbosity::Normal), "{name}");
    }
}

#[test]
fn a_ticket_needs_a_capture_of_the_system_that_was_looked_at() {
    for (origin, wanted) in [
        ("live", Some("`gpucheck capture --output machine.txt`")),
        (
            "root /mnt/disk",
            Some("`gpucheck capture --root /mnt/disk --output machine.txt`"),
        ),
        ("replay of a live capture by gpucheck 0.1.0", None),
    ] {
        let text = normal(&Report {
            origin: origin.to_owned(),
            ..no_driver()
        });
        assert_eq!(text.contains("For a ticket"), wanted.is_some(), "{text}");
        assert!(wanted.is_none_or(|wanted| text.contains(wanted)), "{text}");
    }
}

/// The number is that under which the finding is printed; of one that is filtered out there is none.
#[test]
fn a_stack_that_is_not_set_up_names_the_finding_that_tells_how() {
    let mut report = no_driver();
    let of = crate::readiness::FindingRef {
        check: "nvidia-driver-not-installed".to_owned(),
        subject: "gpu 0000:01:00.0".to_owned(),
    };
    report.readiness = vec![Readiness {
        finding: Some(of),
        ..ready("cuda", State::NotSetUp, "no driver is installed")
    }];
    let text = normal(&report);
    assert!(
        text.contains("no driver is installed; see finding 1"),
        "{text}"
    );
    report.findings.clear();
    let text = normal(&report);
    assert!(!text.contains("see finding"), "{text}");
}

#[test]
fn silence_about_a_stack_in_doubt_is_no_praise() {
    let mut report = healthy();
    report.readiness = vec![Readiness {
        doubt: true,
        ..ready("cuda", State::Unknown, "a node did not open")
    }];
    let text = normal(&report);
    let last = "Nothing wrong was found, but whether CUDA works is not known";
    assert!(text.contains(&format!("? {last}")), "{text}");
    report.readiness[0].doubt = false;
    assert!(!normal(&report).contains(last));
}

#[test]
fn a_lost_gpu_is_marked() {
    let mut report = healthy();
    assert!(!normal(&report).contains("LOST"));
    report.gpus[0].lost = true;
    assert!(normal(&report).contains("LOST"));
}
