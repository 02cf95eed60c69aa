//! `gpucheck advise` on machines: what must and must not stand in a plan, and what holds on every machine there is.

use crate::machines;
use crate::program::{self, Judgement};
use gpucheck::host::machine::Entries;
use serde_json::Value;
use std::collections::BTreeMap;

const BUS: &str = "/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0";
const SECURE_BOOT: &str = "dir /sys/firmware efi
file /sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c
| \\x06\\x00\\x00\\x00\\x01\\
";

/// A machine, what is asked, and what stands in the answer.
struct Case {
    name: &'static str,
    base: &'static str,
    lines: String,
    arguments: &'static [&'static str],
    must: &'static [&'static str],
    must_not: &'static [&'static str],
}

/// Another card of NVIDIA in the place of the one of `desktop-nouveau`, without a driver.
fn card(device: &str) -> String {
    format!(
        "file {BUS}/uevent\n| PCI_CLASS=30000\n| PCI_ID=10DE:{}\n| PCI_SUBSYS_ID=1462:3790\n| PCI_SLOT_NAME=0000:01:00.0\nfile {BUS}/device\n| 0x{device}\nabsent {BUS}/driver\n",
        device.to_uppercase()
    )
}

/// Another card of AMD in the place of the one of `desktop-amd`.
fn amd(device: &str) -> String {
    const BUS: &str = "/sys/devices/pci0000:00/0000:00:01.1/0000:01:00.0/0000:02:00.0/0000:03:00.0";
    format!(
        "file {BUS}/uevent\n| DRIVER=amdgpu\n| PCI_CLASS=30000\n| PCI_ID=1002:{}\n| PCI_SUBSYS_ID=1DA2:E475\n| PCI_SLOT_NAME=0000:03:00.0\nfile {BUS}/device\n| 0x{device}\nfile {BUS}/revision\n| 0x00\nabsent /sys/class/kfd\n",
        device.to_uppercase()
    )
}

fn system(id: &str, like: &str, version: &str, name: &str) -> String {
    let mut text = format!("file /etc/os-release\n| ID={id}\n| PRETTY_NAME=\"{name}\"\n");
    for (key, value) in [("ID_LIKE", like), ("VERSION_ID", version)] {
        if !value.is_empty() {
            text += &format!("| {key}=\"{value}\"\n");
        }
    }
    text
}

const NEWER: &str = "6.8.0-64-generic";
const DKMS: &str = "dir /var/lib/dkms nvidia
dir /var/lib/dkms/nvidia 580.95.05
dir /var/lib/dkms/nvidia/580.95.05 6.8.0-60-generic source
dir /var/lib/dkms/nvidia/580.95.05/6.8.0-60-generic x86_64
whole /var/lib/dkms/**
";

/// A second kernel beside that of `desktop-nvidia`, with this module file or none.
fn newer_kernel(release: &str, module: &str) -> String {
    let folder = format!("/lib/modules/{release}");
    let mut text = format!(
        "dir /lib/modules 6.8.0-60-generic {release}\nwhole /lib/modules\ndir {folder} kernel modules.builtin modules.dep modules.order\n"
    );
    text += &match module.rsplit_once('/') {
        Some((below, file)) => {
            format!("dir {folder}/{below} {file}\nfile {folder}/modules.dep kept\n| {module}:\n")
        }
        None => format!(
            "dir {folder}/kernel/drivers/gpu/drm/nouveau nouveau.ko.zst\nfile {folder}/modules.dep kept\n| kernel/drivers/gpu/drm/nouveau/nouveau.ko.zst:\n"
        ),
    };
    text + &format!("file {folder}/modules.builtin kept\nwhole {folder}/**\n")
}

/// Ids of cards.
const KEPLER: &str = "0fc1";
const FERMI: &str = "1080";
const MAXWELL: &str = "17c8";
const PASCAL: &str = "1b81";
const TURING: &str = "1f02";
const ADA: &str = "2684";
const BLACKWELL: &str = "2c05";

#[expect(clippy::too_many_lines, reason = "a list")]
fn cases() -> Vec<Case> {
    let debian = |release: &str| {
        system(
            "debian",
            "",
            release,
            &format!("Debian GNU/Linux {release}"),
        )
    };
    let desktop = |name, lines: String, must, must_not| Case {
        name,
        base: "desktop-nouveau",
        lines,
        arguments: &[],
        must,
        must_not,
    };
    let own = |name, base, must, must_not| Case {
        name,
        base,
        lines: String::new(),
        arguments: &[],
        must,
        must_not,
    };
    vec![
        desktop(
            "Ubuntu, nouveau on a GTX 1660",
            String::new(),
            &[
                "GeForce GTX 1660",
                "nouveau holds it",
                "sudo ubuntu-drivers install",
                "sudo reboot",
                "no tensor cores",
                "open kernel module or the proprietary one",
                "Then: `cat /proc/driver/nvidia/version`",
            ],
            &["Secure Boot", "legacy", "mokutil", "pip install"],
        ),
        desktop(
            "Ubuntu with Secure Boot",
            card(ADA) + SECURE_BOOT,
            &[
                "Secure Boot is on",
                "are signed already and need no key",
                "sudo mokutil --import /var/lib/shim-signed/mok/MOK.der",
            ],
            &["legacy"],
        ),
        desktop(
            "Blackwell on Debian 12",
            card(BLACKWELL) + &debian("12"),
            &[
                "570 and later",
                "the open kernel module is required",
                "repos/debian12/x86_64/cuda-keyring_1.1-1_all.deb",
                "the driver of Debian 12 itself is of branch 535",
                "nvidia-open",
                "index `cu130`",
            ],
            &[
                "nvidia-open-kernel-dkms",
                "nvidia-kernel-dkms",
                "branch 580",
            ],
        ),
        desktop(
            "Blackwell on Debian 13",
            card(BLACKWELL) + &debian("13"),
            &["repos/debian13/", "is of branch 550"],
            &["nvidia-kernel-dkms"],
        ),
        desktop(
            "Blackwell on a Debian that is not known",
            card(BLACKWELL) + &debian(""),
            &[
                "this GPU needs branch 570 or later",
                "apt policy nvidia-driver",
            ],
            &[
                "cuda-keyring",
                "nvidia-kernel-dkms",
                "nvidia-open-kernel-dkms",
            ],
        ),
        desktop(
            "Ada on Debian 12: its open module is for data centres alone",
            card(ADA) + &debian("12"),
            &[
                "nvidia-kernel-dkms nvidia-driver",
                "is of branch 535",
                "index `cu126`",
            ],
            &["nvidia-open-kernel-dkms", "cuda-keyring"],
        ),
        desktop(
            "Ada on Debian 13",
            card(ADA) + &debian("13"),
            &["nvidia-open-kernel-dkms nvidia-driver"],
            &["cuda-keyring"],
        ),
        desktop(
            "Ada on Debian 11: its driver is too old and NVIDIA packages no new ones",
            card(ADA) + &debian("11"),
            &["this GPU needs branch 520 or later"],
            &["cuda-keyring", "sudo apt install linux-headers"],
        ),
        desktop(
            "Pascal on Debian 12",
            card(PASCAL) + &debian("12"),
            &[
                "up to 580",
                "the open kernel module is impossible",
                "nvidia-kernel-dkms nvidia-driver",
                "index `cu126`",
                "toolkits 8.0 to 12.9",
            ],
            &["nvidia-open", "cuda-keyring"],
        ),
        desktop(
            "Kepler on Debian 12",
            card(KEPLER) + &debian("12"),
            &[
                "up to 470",
                "nvidia-tesla-470-driver",
                "no wheel of a release",
            ],
            &["nvidia-open", "nvidia-kernel-dkms"],
        ),
        desktop(
            "Kepler on Fedora: the end of the road",
            card(KEPLER) + &system("fedora", "", "43", "Fedora Linux 43"),
            &["akmod-nvidia-470xx", "the end of the road", "Vulkan"],
            &["sudo dnf", "index `cu"],
        ),
        desktop(
            "Fermi",
            card(FERMI),
            &["up to 390", "the end of the road", "(unchecked)"],
            &["ubuntu-drivers", "index `cu"],
        ),
        desktop(
            "Maxwell on Fedora",
            card(MAXWELL) + &system("fedora", "", "43", "Fedora Linux 43"),
            &["akmod-nvidia-580xx", "open kernel module cannot run"],
            &["akmod-nvidia xorg", "nvidia-open"],
        ),
        desktop(
            "Turing on Fedora with Secure Boot",
            card(TURING) + &system("fedora", "", "43", "Fedora Linux 43") + SECURE_BOOT,
            &[
                "sudo dnf install akmod-nvidia xorg-x11-drv-nvidia-cuda",
                "kmodgenca",
                "MokManager",
            ],
            &["580xx"],
        ),
        desktop(
            "Ada on RHEL 9",
            card(ADA)
                + &system(
                    "rhel",
                    "fedora",
                    "9.6",
                    "Red Hat Enterprise Linux 9.6 (Plow)",
                ),
            &[
                "sudo dnf module enable nvidia-driver:open-dkms",
                "sudo dnf install nvidia-open",
            ],
            &["akmod"],
        ),
        desktop(
            "Ada on Rocky Linux 10: there are no streams",
            card(ADA) + &system("rocky", "rhel centos fedora", "10.0", "Rocky Linux 10.0"),
            &["sudo dnf install nvidia-open"],
            &[
                "akmod",
                "1. Set up NVIDIA's package repository for this release as NVIDIA's Driver Installation Guide says, then choose the stream",
            ],
        ),
        desktop(
            "Ada on Arch",
            card(ADA) + &system("arch", "", "", "Arch Linux"),
            &["sudo pacman -Syu nvidia-open nvidia-utils"],
            &["580xx"],
        ),
        desktop(
            "Pascal on Arch",
            card(PASCAL) + &system("arch", "", "", "Arch Linux"),
            &["nvidia-580xx-dkms"],
            &["pacman -Syu nvidia-open"],
        ),
        desktop(
            "Ada on openSUSE Tumbleweed",
            card(ADA)
                + &system(
                    "opensuse-tumbleweed",
                    "opensuse suse",
                    "20261101",
                    "openSUSE Tumbleweed",
                ),
            &["sudo zypper install nvidia-open-driver-G07-signed-kmp-meta"],
            &["G06"],
        ),
        desktop(
            "Ada on NixOS",
            card(ADA) + &system("nixos", "", "25.11", "NixOS 25.11 (Xantusia)"),
            &[
                "hardware.nvidia.open = true",
                "sudo nixos-rebuild boot",
                "sudo reboot",
            ],
            &["apt", "legacy_580"],
        ),
        desktop(
            "Ada on Silverblue",
            card(ADA)
                + &system(
                    "fedora",
                    "",
                    "43",
                    "Fedora Linux 43.20261101.0 (Silverblue)",
                )
                + "| VARIANT_ID=silverblue\n",
            &["rpm-ostree", "akmod-nvidia"],
            &["sudo dnf"],
        ),
        desktop(
            "a card that is in no table",
            card("fffd") + &system("fedora", "", "43", "Fedora Linux 43"),
            &["the tables do not know this GPU", "Find out the generation"],
            &["dnf install"],
        ),
        desktop(
            "Maxwell on Ubuntu with Secure Boot off",
            card(MAXWELL) + &SECURE_BOOT.replace("\\x00\\x01", "\\x00\\x00"),
            &["sudo ubuntu-drivers install", "branch 580 at most"],
            &["Secure Boot", "mokutil"],
        ),
        desktop(
            "a distribution that nobody knows",
            card(ADA) + &system("strange", "", "1", "Strange Linux 1"),
            &["Install your distribution's package of the open NVIDIA kernel module"],
            &["sudo apt", "sudo dnf"],
        ),
        Case {
            arguments: &["--for", "pytorch"],
            ..desktop(
                "PyTorch on Blackwell",
                card(BLACKWELL),
                &[
                    "sudo ubuntu-drivers install",
                    "python3 -m pip install torch --index-url https://download.pytorch.org/whl/cu130",
                ],
                &["whl/cu126"],
            )
        },
        Case {
            arguments: &["--for", "rocm"],
            ..desktop(
                "ROCm without a GPU of AMD",
                String::new(),
                &["ROCm needs a GPU of AMD, and none was found here"],
                &["sudo", "nouveau"],
            )
        },
        Case {
            base: "desktop-nvidia",
            ..desktop(
                "the newest kernel has no ready-made module",
                newer_kernel(NEWER, ""),
                &[
                    "Next restart",
                    "The next boot will likely break: kernel 6.8.0-64-generic",
                    "sudo apt install --reinstall linux-modules-nvidia-580-open-6.8.0-64-generic",
                    "The driver is right",
                ],
                &["Plan:"],
            )
        },
        Case {
            base: "desktop-nvidia",
            ..desktop(
                "the newest kernel has its module",
                newer_kernel(NEWER, "kernel/nvidia-580-open/nvidia.ko.zst"),
                &["The driver is right"],
                &["Next restart"],
            )
        },
        Case {
            base: "desktop-nvidia",
            ..desktop(
                "a newer kernel of another flavour",
                newer_kernel("6.11.0-29-lowlatency", ""),
                &["The driver is right"],
                &["Next restart"],
            )
        },
        Case {
            base: "desktop-nvidia",
            ..desktop(
                "DKMS, and no headers for the newest kernel",
                newer_kernel(NEWER, "") + DKMS,
                &[
                    "The next boot will likely break",
                    "no headers to build it with",
                    "sudo apt install linux-headers-6.8.0-64-generic",
                ],
                &["Plan:"],
            )
        },
        Case {
            base: "desktop-nvidia",
            ..desktop(
                "akmods builds while the kernel starts",
                newer_kernel(NEWER, "")
                    + &system("fedora", "", "43", "Fedora Linux 43")
                    + "dir /usr/src/akmods nvidia-kmod-580.95.05-1.fc43.src.rpm\nwhole /usr/src/akmods\n",
                &["akmods builds it while that kernel starts"],
                &["will likely break"],
            )
        },
        Case {
            base: "docker-nvidia",
            ..desktop(
                "a container on a host without a driver",
                format!(
                    "{}absent /sys/module/nvidia\nabsent /proc/driver/nvidia\nanswer @nvml {{\"error\": \"DRIVER_NOT_LOADED\"}}\n",
                    card(ADA)
                ),
                &["Drivers belong to the host"],
                &["sudo", "Secure Boot"],
            )
        },
        Case {
            base: "wsl2-nvidia",
            ..desktop(
                "WSL whose library does not answer",
                "answer @nvml {\"error\": \"DRIVER_NOT_LOADED\"}\n".to_owned(),
                &["wsl --shutdown", "install no Linux driver in WSL"],
                &["ubuntu-drivers", "sudo"],
            )
        },
        Case {
            base: "wsl2-nvidia",
            ..desktop(
                "WSL whose settings keep the GPU out",
                "absent /sys/bus/pci/devices/5582:00:00.0\nabsent /sys/bus/pci/drivers/dxgkrnl\nabsent /dev/dxg\ndir /dev null\nabsent /usr/lib/wsl/lib\nfile /etc/wsl.conf\n| [gpu]\n| enabled=false\nanswer @nvml {\"not_loaded\": \"no library\"}\n".to_owned(),
                &["/etc/wsl.conf"],
                &["Update the Windows driver", "sudo apt"],
            )
        },
        Case {
            base: "desktop-amd",
            ..desktop(
                "a name that may be that of a card or of a laptop",
                amd("73ff"),
                &["RX 6600"],
                &["built into a laptop"],
            )
        },
        Case {
            base: "desktop-amd",
            ..desktop(
                "Polaris: dropped by ROCm",
                amd("67df"),
                &[
                    "gfx803",
                    "in no list of AMD's",
                    "were the last that hold code for it",
                    "The driver is right",
                ],
                &["Plan:", "index `rocm"],
            )
        },
        Case {
            base: "desktop-amd",
            arguments: &["--for", "rocm"],
            ..desktop(
                "Fiji, and somebody wants ROCm",
                amd("7300"),
                &[
                    "gfx803",
                    "computing without ROCm",
                    "Vulkan backend",
                    "AMD lists this GPU in no release",
                ],
                &["dnf install", "apt install"],
            )
        },
        own(
            "a healthy desktop",
            "desktop-nvidia",
            &[
                "The driver is right, and nothing needs to be installed",
                "12 GiB",
            ],
            &["Plan:", "sudo"],
        ),
        own(
            "a healthy RX 7800 XT",
            "desktop-amd",
            &["The driver is right", "gfx1101", "WMMA", "tokens a second"],
            &["Plan:", "Secure Boot"],
        ),
        Case {
            arguments: &["--for", "pytorch"],
            ..own("PyTorch on it", "desktop-amd", &["whl/rocm7.2"], &["cu130"])
        },
        own(
            "a healthy Arc",
            "desktop-intel",
            &["The driver is right"],
            &["Plan:"],
        ),
        own(
            "a laptop",
            "laptop-hybrid",
            &["built into a laptop", "part of the processor"],
            &["W for the board", "Plan:"],
        ),
        own(
            "four accelerators are told of once",
            "server-amd",
            &[
                "0000:21:00.0, 0000:41:00.0",
                "64 GiB",
                "FLUX at 16 bit among them",
            ],
            &["as TechPowerUp suggests"],
        ),
        own(
            "WSL",
            "wsl2-nvidia",
            &["the driver of Windows serves it"],
            &["Plan:", "open kernel module", "ubuntu-drivers"],
        ),
        own(
            "a container",
            "docker-nvidia",
            &["The driver is right"],
            &["Plan:"],
        ),
        own(
            "a processor's GPU",
            "mini-pc-amd-npu",
            &["part of the processor", "GTT"],
            &["tokens a second"],
        ),
    ]
}

/// Cases on machines of the shared material.
fn shared_cases() -> Vec<Case> {
    let shared = |name, base, lines: &str, must, must_not| Case {
        name,
        base,
        lines: lines.to_owned(),
        arguments: &[],
        must,
        must_not,
    };
    vec![
        shared(
            "no GPU",
            "debian-12-no-gpu-vm",
            "",
            &["No GPU was found here"],
            &["sudo", "Plan:"],
        ),
        shared(
            "RX 7900 XTX",
            "fedora-42-rx7900xtx",
            "",
            &["AMD lists it from", "800 W", "24 GiB"],
            &["Plan:"],
        ),
        shared(
            "Strix Halo",
            "ubuntu-24.04-strix-halo",
            "",
            &[
                "108.0 GiB of the system's memory (GTT)",
                "65B to 70B at 8 bit",
                "7.14.0",
            ],
            &["Plan:", "0 GiB as its driver says"],
        ),
        shared(
            "Arc B580",
            "ubuntu-24.04-arc-b580",
            "",
            &["xe of the kernel holds it"],
            &["Plan:"],
        ),
        shared(
            "Silverblue that works",
            "fedora-silverblue-rtx3060",
            "",
            &["The driver is right"],
            &["Plan:"],
        ),
        shared(
            "NixOS that works",
            "quiet-nvidia-nixos-paths",
            "",
            &["The driver is right"],
            &["Plan:"],
        ),
        shared(
            "only a toolkit",
            "nvidia-not-installed-toolkit-only",
            "",
            &[
                "NVIDIA's driver is not installed",
                "sudo ubuntu-drivers install",
            ],
            &["cuda-keyring"],
        ),
        shared(
            "eight A100 without a driver",
            "nvidia-not-installed-a100x8",
            "",
            &["sudo ubuntu-drivers --gpgpu install"],
            &["legacy"],
        ),
        shared(
            "a Kepler beside a card that computes",
            "quiet-nouveau-on-old-display-card",
            "",
            &["leave it as it is"],
            &["Plan:"],
        ),
        shared(
            "the running kernel is gone",
            "kernel-gone-after-upgrade-rtx4090",
            "",
            &["reboot pending"],
            &[],
        ),
        shared(
            "no module for the kernel",
            "module-missing-after-kernel-upgrade",
            "",
            &["has no module for the running kernel"],
            &["ubuntu-drivers"],
        ),
        shared(
            "a newer kernel is beside it and nothing breaks",
            "quiet-kernel-newer-one-beside",
            "",
            &["The driver is right"],
            &["Next restart"],
        ),
    ]
}

fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn ask(machine: &Entries, arguments: &[&str]) -> Result<program::Output, String> {
    let file = machines::write(machine)?;
    let mut all = program::words(&["advise", "--replay"]);
    all.push(file.0.clone().into());
    all.extend(program::words(arguments));
    program::run(&all)
}

fn judge_case(case: &Case) -> Judgement {
    let mut judgement = Judgement::default();
    let text = format!("gpucheck-machine 1\nbase {}\n{}", case.base, case.lines);
    let said = machines::resolve(&text, 0).and_then(|machine| ask(&machine, case.arguments));
    let output = match said {
        Ok(output) => output,
        Err(error) => {
            judgement.fail(error);
            return judgement;
        }
    };
    let text = squeezed(&output.stdout);
    let json = machines::resolve(
        &format!("gpucheck-machine 1\nbase {}\n{}", case.base, case.lines),
        0,
    )
    .and_then(|machine| judge_machine(&machine, &templates()));
    match json {
        Ok(other) => judgement.add(other),
        Err(error) => judgement.fail(error),
    }
    if output.exit != 0 {
        judgement.fail(format!("exit status {}: {}", output.exit, output.stderr));
    }
    for must in case.must {
        if !text.contains(must) {
            judgement.fail(format!("does not say `{must}`: {text}"));
        }
    }
    for must_not in case.must_not {
        if text.contains(must_not) {
            judgement.fail(format!("says `{must_not}`: {text}"));
        }
    }
    judgement
}

#[test]
fn plans_are_right_for_the_card_and_the_release() {
    let name = |case: &Case| case.name.to_owned();
    program::judge_all("plans", &cases(), name, judge_case);
    if program::shared("machines").is_some() {
        program::judge_all(
            "plans of shared machines",
            &shared_cases(),
            name,
            judge_case,
        );
    }
}

/// The texts between the placeholders of a command of `fixes.toml`.
type Template = Vec<String>;

fn templates() -> Vec<Template> {
    let text = include_str!("../../data/fixes.toml");
    let mut table: BTreeMap<String, Vec<BTreeMap<String, toml::Value>>> =
        toml::from_str(text).expect("rows");
    let rows = table.remove("fix").expect("rows of fixes");
    let mut found = Vec::new();
    for row in rows {
        let commands = row.get("commands").and_then(toml::Value::as_array);
        for command in commands
            .into_iter()
            .flatten()
            .filter_map(toml::Value::as_str)
        {
            let pieces = command.split('{').enumerate().map(|(at, piece)| match at {
                0 => piece.to_owned(),
                _ => piece
                    .split_once('}')
                    .map_or(piece, |(_, rest)| rest)
                    .to_owned(),
            });
            found.push(pieces.collect());
        }
    }
    found
}

fn is_of(command: &str, template: &Template) -> bool {
    let mut rest = command;
    for (at, piece) in template.iter().enumerate() {
        let Some(found) = rest.find(piece.as_str()) else {
            return false;
        };
        if at == 0 && found != 0 {
            return false;
        }
        rest = &rest[found + piece.len()..];
    }
    template.len() > 1 || rest.is_empty()
}

fn strings<'v>(value: &'v Value, key: &str) -> Vec<&'v str> {
    let list = value[key].as_array();
    list.into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

fn list<'v>(value: &'v Value, key: &str) -> impl Iterator<Item = &'v Value> {
    value[key].as_array().into_iter().flatten()
}

/// What is said of the kernel module that a GPU needs.
fn module(gpu: &Value) -> &'static str {
    let said = list(gpu, "support").find(|line| line["label"] == "module");
    let text = said
        .and_then(|line| line["text"].as_str())
        .unwrap_or_default();
    match text {
        _ if text.contains("impossible") => "proprietary",
        _ if text.contains("required") => "open",
        _ => "any",
    }
}

/// What is said of the branches that take a GPU.
fn branches(gpu: &Value) -> Option<&str> {
    let said = list(gpu, "support").find(|line| line["label"] == "branches");
    said?["text"].as_str()
}

fn judge_advice(advice: &Value, templates: &[Template], judgement: &mut Judgement) {
    let steps: Vec<&Value> = list(advice, "plans")
        .flat_map(|plan| list(plan, "steps"))
        .chain(list(advice, "boot"))
        .collect();
    for step in &steps {
        for command in strings(step, "commands") {
            if !templates.iter().any(|template| is_of(command, template)) {
                judgement.fail(format!("`{command}` is in no recipe"));
            }
        }
        if step["words"].as_str().is_none_or(str::is_empty) {
            judgement.fail("a step without words");
        }
    }
    let all_right = list(advice, "gpus").all(|gpu| gpu["state"] == "right");
    for plan in list(advice, "plans") {
        if plan["title"] != "NVIDIA's driver" {
            continue;
        }
        if all_right {
            judgement.fail("a driver is right and a plan replaces it");
        }
        let keys = strings(plan, "gpus");
        let mut needs: Vec<&str> = list(advice, "gpus")
            .filter(|gpu| gpu["key"].as_str().is_some_and(|key| keys.contains(&key)))
            .map(module)
            .collect();
        needs.sort_unstable();
        needs.dedup();
        let commands: Vec<&str> = list(plan, "steps")
            .flat_map(|step| strings(step, "commands"))
            .collect();
        let words: Vec<&str> = commands
            .iter()
            .flat_map(|command| command.split_whitespace())
            .collect();
        let has = |test: &dyn Fn(&str) -> bool| words.iter().any(|word| test(word));
        if needs == ["proprietary"] && has(&|word| word.contains("open")) {
            judgement.fail(format!(
                "the open module, where it is impossible: {commands:?}"
            ));
        }
        let proprietary = |word: &str| {
            word == "nvidia-kernel-dkms" || word.contains("580xx") || word.contains("470")
        };
        let newest = |word: &str| word == "akmod-nvidia";
        if needs == ["proprietary"] && has(&newest) {
            judgement.fail(format!("a branch that has dropped the card: {commands:?}"));
        }
        let of = |text: &str| {
            list(advice, "gpus")
                .filter(|gpu| gpu["key"].as_str().is_some_and(|key| keys.contains(&key)))
                .all(|gpu| branches(gpu).is_some_and(|says| says.starts_with(text)))
        };
        let old = ["up to 470", "up to 390", "up to 340"]
            .iter()
            .any(|text| of(text));
        if old && has(&|word| word == "ubuntu-drivers" || word.contains("580xx")) {
            judgement.fail(format!("a branch that has dropped the card: {commands:?}"));
        }
        let debian = advice["system"]
            .as_str()
            .is_some_and(|system| system.starts_with("Debian"));
        if debian && of("570 and") && has(&|word| word == "nvidia-open-kernel-dkms") {
            judgement.fail(format!(
                "a branch that is too old for the card: {commands:?}"
            ));
        }
        if needs == ["open"] && has(&proprietary) {
            judgement.fail(format!(
                "the proprietary module, where it is impossible: {commands:?}"
            ));
        }
    }
}

fn judge_width(text: &str, advice: &Value, judgement: &mut Judgement) {
    let commands: Vec<&str> = list(advice, "plans")
        .flat_map(|plan| list(plan, "steps"))
        .chain(list(advice, "boot"))
        .flat_map(|step| strings(step, "commands"))
        .collect();
    for line in text.lines() {
        let is_free = line.contains('`') || commands.contains(&line.trim());
        if line.chars().count() > 80 && !is_free {
            judgement.fail(format!("more than 80 columns: {line}"));
        }
        if line.chars().any(char::is_control) {
            judgement.fail("a control character");
        }
    }
}

/// What the report calls ready has no driver that is missing, wrong or unfinished.
fn judge_states(advice: &str, report: &Value, judgement: &mut Judgement) {
    let stacks = [("cuda", "nvidia"), ("rocm", "amd"), ("level-zero", "intel")];
    let first = serde_json::Deserializer::from_str(advice)
        .into_iter::<Value>()
        .next();
    let Some(Ok(advice)) = first else {
        return;
    };
    for (stack, vendor) in stacks {
        let ready =
            list(report, "readiness").any(|row| row["stack"] == stack && row["state"] == "ready");
        for gpu in list(&advice, "gpus").filter(|gpu| ready && gpu["vendor"] == vendor) {
            let state = gpu["state"].as_str().unwrap_or_default();
            if ["missing", "wrong", "unfinished"].contains(&state) {
                judgement.fail(format!("{stack} is ready, and {} is {state}", gpu["key"]));
            }
        }
    }
}

fn judge_machine(machine: &Entries, templates: &[Template]) -> Result<Judgement, String> {
    let mut judgement = Judgement::default();
    let mut all = String::new();
    for arguments in [&[][..], &["--for", "pytorch"], &["--for", "rocm"]] {
        let json = ask(machine, &[arguments, &["--format", "json"]].concat())?;
        if json.exit != 0 || !json.stderr.is_empty() {
            judgement.fail(format!("exit status {}: {}", json.exit, json.stderr));
        }
        let advice: Value =
            serde_json::from_str(&json.stdout).map_err(|error| error.to_string())?;
        judge_advice(&advice, templates, &mut judgement);
        if arguments.is_empty() {
            let text = ask(machine, arguments)?;
            judge_width(&text.stdout, &advice, &mut judgement);
        }
        all += &json.stdout;
    }
    let file = machines::write(machine)?;
    let mut arguments = program::words(&["--format", "json", "--facts", "--replay"]);
    arguments.push(file.0.clone().into());
    let report: Value = serde_json::from_str(&program::run(&arguments)?.stdout)
        .map_err(|error| error.to_string())?;
    let has = |check: &str| {
        list(&report, "verdicts").any(|row| {
            row["check"] == check && (row["verdict"] == "found" || row["was"] == "found")
        })
    };
    for (says, check) in [
        ("is not installed any more", "running-kernel-not-installed"),
        ("is not the one on disk", "driver-reboot-pending"),
    ] {
        if all.contains(says) && !has(check) {
            judgement.fail(format!("says `{says}`, and {check} found nothing"));
        }
    }
    let parted = ["driver-reboot-pending", "nvidia-packages-out-of-step"];
    if all.contains("a restart would part them") && !parted.into_iter().any(has) {
        judgement.fail("warns of a restart, and no check found why".to_owned());
    }
    judge_states(&all, &report, &mut judgement);
    if all.contains("Secure Boot is on") {
        let says = report["facts"]["security"].to_string();
        if !says.contains("\"secure_boot\":{\"got\":true}") {
            judgement.fail(format!(
                "Secure Boot is named and not known to be on: {says}"
            ));
        }
    }
    Ok(judgement)
}

#[test]
fn advice_holds_on_every_machine() {
    let templates = templates();
    let name = |(name, _): &(String, Entries)| name.clone();
    program::judge_all("advice", &machines::every(), name, |(_, machine)| {
        judge_machine(machine, &templates).unwrap_or_else(|error| {
            let mut judgement = Judgement::default();
            judgement.fail(error);
            judgement
        })
    });
}

#[test]
fn templates_are_matched_whole() {
    let template = |text: &str| -> Template { text.split("{x}").map(str::to_owned).collect() };
    assert!(is_of("sudo apt install a", &template("sudo apt install a")));
    assert!(!is_of(
        "sudo apt install a b",
        &template("sudo apt install a")
    ));
    assert!(is_of("dkms -k 6.8", &template("dkms -k {x}")));
    assert!(!is_of("rm -k 6.8", &template("dkms -k {x}")));
}
