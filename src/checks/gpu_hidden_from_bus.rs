//! A GPU is switched off or taken off the bus, by the firmware or by a tool.

use crate::check::Verdict;
use crate::facts::gpu_switches::GpuSwitches;
use crate::facts::{Seen, Why};
use crate::finding::Finding;
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::{Stack, Vendor, View, Wanted};

crate::check! {
    /// No GPU of its maker is on the bus, and something here is set to switch one off or to take it off the bus.
    ///
    /// ## Why it matters
    /// The GPU is not broken and no driver is missing: it has no power, or the kernel was told to forget it. Until that is
    /// changed no driver and no tool finds it.
    ///
    /// ## How it comes about
    /// Laptops save power so, and mostly somebody wanted it: the firmware of ASUS laptops has a switch (`dgpu_disable`, the Eco mode of
    /// Windows), supergfxd and EnvyControl have a mode `integrated`, and a rule of udev may write `1` into the file `remove`
    /// of a device. bbswitch only takes the power and leaves the GPU on the bus, so it is not looked for.
    ///
    /// ## How to confirm
    /// `lspci -d 10de:` prints nothing; `cat /sys/devices/platform/asus-nb-wmi/dgpu_disable`, `supergfxctl -g`,
    /// `envycontrol --query`, `grep -r "ATTR{remove}" /etc/udev/rules.d /usr/lib/udev/rules.d`.
    "gpu-hidden-from-bus", Bus, Error, each Machine, run, later ["bbswitch"]
}

const WOULD_TELL: &str = "`grep -r \"ATTR{remove}\" /etc/udev/rules.d /usr/lib/udev/rules.d`, `supergfxctl -g`, `cat /sys/devices/platform/asus-nb-wmi/dgpu_disable`";
const SUPERGFXD: &str = "/etc/supergfxd.conf";

fn run(view: &View, _: &Tables) -> Verdict {
    if view.wsl().is_some() || view.in_container() || view.hypervisor().is_some() || view.is_tegra()
    {
        return Verdict::NotHere;
    }
    // Where NVIDIA's is here and another one of its own, nothing is missing that is known.
    let discrete = |vendor: Vendor| {
        let mut gpus = view.gpus.iter().filter(|gpu| gpu.vendor == vendor);
        gpus.any(|gpu| gpu.integrated != Some(true))
    };
    let switches = match &view.facts.gpu_switches {
        Seen::Got(switches) => switches,
        Seen::Absent | Seen::Unasked(Why::NoSuchHardware) => return Verdict::NotHere,
        _ if discrete(Vendor::Nvidia) => return Verdict::NotHere,
        other => {
            return Verdict::cannot_tell(
                format!(
                    "what may switch a GPU off: {}",
                    other.as_ref().map(|_| ()).why()
                ),
                WOULD_TELL,
            );
        }
    };
    let any_discrete = discrete(Vendor::Nvidia) || discrete(Vendor::Amd) || discrete(Vendor::Intel);
    let found = by_rule(switches, view).or_else(|| {
        // The firmware and supergfxd do not say whose GPU it is.
        (!any_discrete)
            .then(|| by_firmware(switches).or_else(|| by_supergfxd(switches)))
            .flatten()
    });
    if let Some(finding) = found {
        return match view.gpus_whole {
            true => {
                let stack = finding_stack(&finding, view);
                finding.about(stack).into()
            }
            false => Verdict::cannot_tell(view.why_gpus_are_unknown(), "`lspci -nn -d ::03xx`"),
        };
    }
    if view.gpus_of(Stack::Cuda).next().is_some() {
        return Verdict::NotHere;
    }
    match unknown(switches, any_discrete) {
        Some(why) => Verdict::cannot_tell(why, WOULD_TELL),
        None => Verdict::fine("nothing that was looked at switches a GPU off"),
    }
}

/// The stack that misses its GPU: that of the maker in the rule, else one that somebody wants.
fn finding_stack(finding: &Finding, view: &View) -> Option<Stack> {
    if finding.stack.is_some() {
        return finding.stack;
    }
    let is_missed = |stack: &Stack| {
        view.gpus_of(*stack).next().is_none() && matches!(view.wanted(*stack), Wanted::Yes(_))
    };
    // Nearly all of them are NVIDIA's.
    let mut stacks = [Stack::Cuda, Stack::Rocm].into_iter();
    stacks.find(is_missed).or(Some(Stack::Cuda))
}

fn why_unread(path: &str, answer: &Seen<impl Sized>) -> Option<String> {
    answer
        .is_unknown()
        .then(|| format!("{path}: {}", answer.as_ref().map(|_| ()).why()))
}

fn unknown(switches: &GpuSwitches, any_discrete: bool) -> Option<String> {
    if !switches.remove_rules.whole {
        return Some("not all rules of udev could be read".to_owned());
    }
    if any_discrete {
        return None;
    }
    why_unread(SUPERGFXD, &switches.supergfxd_mode).or_else(|| {
        let mut files = switches.dgpu_disable.iter();
        files.find_map(|(path, answer)| why_unread(path, answer))
    })
}

fn by_firmware(switches: &GpuSwitches) -> Option<Finding> {
    let (path, value) = switches
        .dgpu_disable
        .iter()
        .find(|(_, value)| value.got().is_some_and(|value| value == "1"))?;
    let finding = Finding::new("the firmware has switched the discrete GPU of this laptop off")
        .cause("firmware-mux")
        .saw_answer(path.as_str(), value)
        .why("It has no power and is not on the bus; mostly that is wanted, to save power")
        .fix(FixCall::new("switch-asus-gpu-on").with("file", path.as_str()));
    Some(finding)
}

fn by_supergfxd(switches: &GpuSwitches) -> Option<Finding> {
    let mode = switches.supergfxd_mode.got()?;
    if mode != "Integrated" {
        return None;
    }
    let finding = Finding::new("supergfxd has switched the discrete GPU of this laptop off")
        .cause("supergfxd")
        .likely()
        .saw(SUPERGFXD, "\"mode\": \"Integrated\"")
        .why("In this mode the GPU is taken off the bus; somebody chose it, mostly to save power")
        .fix(
            FixCall::new("power-tool-mode")
                .with("tool", "supergfxd")
                .with("word", "supergfxctl -m Hybrid"),
        );
    Some(finding)
}

/// A rule that removes GPUs of a maker of whom none is here.
fn by_rule(switches: &GpuSwitches, view: &View) -> Option<Finding> {
    switches.remove_rules.items.iter().find_map(|(path, rules)| {
        let (line, vendor) = rules.lines.iter().find_map(|line| {
            let vendor = vendor_of(line)?;
            let is_here = view.gpus.iter().any(|gpu| gpu.vendor == vendor);
            (!is_here).then_some((line, vendor))
        })?;
        let finding = match rules.by_envycontrol {
            true => Finding::new("EnvyControl takes the NVIDIA GPU off the bus as the machine starts")
                .cause("envycontrol")
                .why("In its mode `integrated` the GPU is removed; somebody chose it, mostly to save power")
                .fix(
                    FixCall::new("power-tool-mode")
                        .with("tool", "EnvyControl")
                        .with("word", "sudo envycontrol -s hybrid"),
                ),
            false => Finding::new("a rule of udev takes the GPU off the bus as the machine starts")
                .cause("udev-remove-rule")
                .why("The kernel forgets the GPU as soon as it finds it; no driver is asked")
                .fix(FixCall::new("remove-udev-rule").with("file", path.as_str())),
        };
        Some(
            finding
                .likely()
                .about(vendor.stack())
                .saw(path.as_str(), line.trim())
                .saw("/sys/bus/pci/devices", "no GPU of this maker"),
        )
    })
}

/// Whose GPUs a rule removes. None: it is for other devices, or names no maker.
fn vendor_of(line: &str) -> Option<Vendor> {
    let value = |key: &str| {
        let (_, rest) = line.split_once(key)?;
        Some(rest.split('"').next().unwrap_or(rest))
    };
    if value("ATTR{remove}=\"")? != "1" {
        return None;
    }
    // A rule without a class is for all functions of the card.
    if value("ATTR{class}==\"").is_some_and(|class| !class.starts_with("0x03")) {
        return None;
    }
    let vendor = value("ATTR{vendor}==\"")?.strip_prefix("0x")?;
    let vendor = Vendor::from_id(u16::from_str_radix(vendor, 16).ok()?);
    (vendor != Vendor::Other).then_some(vendor)
}
