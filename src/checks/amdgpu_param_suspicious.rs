//! Parameters of amdgpu that are unusual, that it does not know, or that are not in effect.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::{Evidence, Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::version::Version;
use crate::view::log::Kind;
use crate::view::{DriverGround, Loaded, Stack, View, normalised};

crate::check! {
    /// A parameter of the driver amdgpu has a value that is meant for tests, is not known to the driver, or is written down
    /// and not in effect.
    ///
    /// ## Why it matters
    /// With some values a hang stays until the machine is restarted, or the GPU computes slower. A misspelt name
    /// does nothing, and whoever wrote it believes that it does.
    ///
    /// ## How it comes about
    /// Threads about hangs and about clocks give such values, and they stay. The driver is mostly loaded from the initramfs, which holds
    /// a copy of `/etc/modprobe.d`: what was changed there counts after the initramfs was made anew and the machine restarted.
    /// Values that only change clocks, power or limits are a note: somebody set them, and reports of faults should name them.
    ///
    /// ## How to confirm
    /// `grep . /sys/module/amdgpu/parameters/*`, `cat /proc/cmdline`, `grep -r amdgpu /etc/modprobe.d`,
    /// `journalctl -k -b -g "unknown parameter"`.
    "amdgpu-param-suspicious", Driver, Warning, each Stack, run
}

const FOLDER: &str = "/sys/module/amdgpu/parameters";
const COMMAND_LINE: &str = "/proc/cmdline";
const WOULD_TELL: &str = "`grep . /sys/module/amdgpu/parameters/*`";

/// Parameters with their usual values (drivers/gpu/drm/amd/amdgpu/amdgpu_drv.c), the values that are for tests, and what they
/// do. `-1` means that the driver decides.
const USUAL: &[(&str, &[&str], &[&str], &str)] = &[
    (
        "aspm",
        &["-1"],
        &[],
        "decides over power saving of the link",
    ),
    (
        "cwsr_enable",
        &["1"],
        &[],
        "0 keeps the kernel from interrupting computing waves",
    ),
    (
        "exp_hw_support",
        &["0"],
        &[],
        "lets the driver take chips that it is not ready for",
    ),
    (
        "gpu_recovery",
        &["-1", "1"],
        &["0"],
        "0 leaves the GPU hanging until the machine is restarted",
    ),
    (
        "mcbp",
        // 0 before Linux 6.5.
        &["-1", "0"],
        &[],
        "decides over preemption within a batch of commands",
    ),
    (
        "noretry",
        &["-1"],
        &[],
        "decides whether memory faults are tried again",
    ),
    (
        "pcie_gen_cap",
        &["0"],
        &[],
        "overrides the speeds of the link",
    ),
    (
        "runpm",
        &["-1", "-2"],
        &[],
        "decides whether the GPU may sleep",
    ),
    (
        "sched_policy",
        &["0"],
        &["2"],
        "2 schedules compute queues without the hardware, for debugging only",
    ),
    (
        "vm_fragment_size",
        &["-1", "9"],
        &[],
        "overrides the size of pieces of memory",
    ),
];
/// Default of `ppfeaturemask`, and the bit that lets clocks and voltages be changed.
const FEATURES: &str = "ppfeaturemask";
const OVERDRIVE: u64 = 0x4000;
/// Those that the driver leaves as they are set.
const KEPT: [&str; 8] = [
    "cwsr_enable",
    "exp_hw_support",
    "gpu_recovery",
    "gttsize",
    "mcbp",
    "noretry",
    "ppfeaturemask",
    "sched_policy",
];

fn run(stack: Stack, view: &View, _: &Tables) -> Verdict {
    let has_gpu = view
        .gpus_of(stack)
        .any(|gpu| gpu.is_on_bus() && gpu.passed_in != Some(false));
    if !has_gpu || view.wsl().is_some() {
        return Verdict::NotHere;
    }
    if matches!(view.loaded("amdgpu"), Loaded::No(_)) {
        return Verdict::NotHere;
    }
    let module = match view.module("amdgpu") {
        Seen::Got(module) => module,
        Seen::Absent => return Verdict::NotHere,
        other => {
            return Verdict::cannot_tell(
                format!("/sys/module/amdgpu: {}", other.map(|_| ()).why()),
                WOULD_TELL,
            );
        }
    };
    if let Some(finding) = unknown_parameter(view) {
        return finding.into();
    }
    let mut unusual = unusual_values(&module.parameters);
    // Older ones had other defaults.
    let release = view.kernel_release().got().copied();
    if release.and_then(Version::parse) < Version::parse("5.15") {
        unusual.retain(|(_, seen)| !seen.source.ends_with("/noretry"));
    }
    let worst = unusual.iter().map(|(severity, _)| *severity).max();
    if worst != Some(Severity::Warning)
        && let Some(finding) = not_in_effect(&module.parameters, view)
    {
        return finding.into();
    }
    unusual.sort_by_key(|(severity, _)| std::cmp::Reverse(*severity));
    let Some((severity, first)) = unusual.first() else {
        return match unknown(&module.parameters, view) {
            Some(why) => Verdict::cannot_tell(why, WOULD_TELL),
            None => Verdict::fine("the parameters of amdgpu that were looked at are as usual"),
        };
    };
    let name = first.source.rsplit('/').next().unwrap_or_default();
    let mut finding = Finding::new(match severity {
        Severity::Note => format!("amdgpu has other parameters than usual, {name} among them"),
        _ => format!("the parameter {name} of amdgpu has a value that is for tests"),
    })
    .cause("unusual-value")
    .severity(*severity)
    .works_all_the_same()
    .why("Somebody set it; name it in reports of faults, and take it away where nobody knows what for")
    .fix(view.driver_fix(FixCall::new("usual-amdgpu-parameters")));
    finding
        .evidence
        .extend(unusual.into_iter().map(|(_, seen)| seen));
    finding.into()
}

/// What could not be looked at.
fn unknown(parameters: &Parameters, view: &View) -> Option<String> {
    if let Some((name, value)) = parameters.iter().find(|(_, value)| value.is_unknown()) {
        return Some(format!("{FOLDER}/{name}: {}", value.why()));
    }
    let words = match view.kernel_words() {
        Seen::Got(words) => words,
        other => return Some(format!("{COMMAND_LINE}: {}", other.map(|_| ()).why())),
    };
    let own = view.driver_ground() == DriverGround::Own;
    if let Some(why) = view.unread_modprobe().filter(|_| own) {
        return Some(why);
    }
    // What is none of those that were read may be unknown to the driver, too; only the log says so.
    let is_read = |name: &str| {
        parameters
            .get(name)
            .is_some_and(|value| value.got().is_some())
    };
    let of_files = in_files(view).map(|(_, _, name, _)| name);
    let of_words = on_command_line(&words).map(|(_, _, name, _)| name);
    let mut others = of_words.chain(of_files).filter(|name| !is_read(name));
    let name = others.next().filter(|_| view.log_tells().is_unknown())?;
    Some(format!(
        "whether amdgpu knows the parameter {name}: the kernel log: {}",
        view.log_tells().why()
    ))
}

type Parameters = std::collections::BTreeMap<String, Seen<String>>;

fn unusual_values(parameters: &Parameters) -> Vec<(Severity, Evidence)> {
    let seen = |name: &str, says: String| Evidence {
        source: format!("{FOLDER}/{name}"),
        says,
    };
    let mut unusual: Vec<(Severity, Evidence)> = USUAL
        .iter()
        .filter_map(|(name, usual, tests, does)| {
            let value = parameters.get(*name)?.got()?.trim();
            if usual.contains(&value) || value.is_empty() {
                return None;
            }
            let severity = match tests.contains(&value) {
                true => Severity::Warning,
                false => Severity::Note,
            };
            Some((severity, seen(name, format!("{value}: {does}"))))
        })
        .collect();
    let mask = parameters.get(FEATURES).and_then(Seen::got);
    if let Some(mask) =
        mask.filter(|mask| number(mask).is_some_and(|mask| mask & OVERDRIVE as i64 != 0))
    {
        let says = format!(
            "{}: clocks and voltages may be changed (overdrive)",
            mask.trim()
        );
        unusual.push((Severity::Note, seen(FEATURES, says)));
    }
    unusual
}

/// A whole number as parameters are written: decimal, hexadecimal, or a word for yes and no.
fn number(value: &str) -> Option<i64> {
    let value = value.trim();
    match value.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None => match value {
            "Y" | "y" => Some(1),
            "N" | "n" => Some(0),
            value => value.parse().ok(),
        },
    }
}

/// What is set for amdgpu on the command line: the word, and its module, name and value.
fn on_command_line(words: &[String]) -> impl Iterator<Item = (&str, &str, &str, &str)> {
    words.iter().filter_map(|word| {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        let (module, name) = name.split_once('.')?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
        (module.contains("amdgpu") && module.chars().all(is_name)).then_some((
            word.as_str(),
            module,
            name,
            value,
        ))
    })
}

/// What `options` lines say of amdgpu: file, line, name and value.
fn in_files<'v>(view: &'v View) -> impl Iterator<Item = (&'v str, &'v str, &'v str, &'v str)> {
    let of_driver = view
        .modprobe_options()
        .filter(|(_, module, _)| normalised(module) == "amdgpu");
    of_driver.flat_map(|(path, _, line)| {
        line.split_whitespace().skip(2).map(move |word| {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            (path, line, name, value)
        })
    })
}

/// A name that the driver does not know and that is still written down.
fn unknown_parameter(view: &View) -> Option<Finding> {
    let words = view.kernel_words().into_got().unwrap_or_default();
    let finding = |title: String, source: &str, says: &str, word: &str| {
        Finding::new(title)
            .cause("unknown-parameter")
            .works_all_the_same()
            .saw(source, says)
            .why("The setting does nothing, and what it was meant for is not done")
            .fix(
                view.driver_fix(
                    FixCall::new("correct-amdgpu-parameter")
                        .with("word", word)
                        .with("file", source),
                ),
            )
    };
    // No module is called so.
    let misspelt = on_command_line(&words).find(|(_, module, ..)| normalised(module) != "amdgpu");
    if let Some((word, module, ..)) = misspelt {
        let title = format!(
            "{word} on the kernel command line is for a module {module}, which does not exist"
        );
        return Some(finding(title, COMMAND_LINE, word, word));
    }
    // The kernel says so before the driver begins, and of a load that is over only where the name still stands there.
    view.log_events.iter().find_map(|event| {
        let Kind::UnknownParameter { module, parameter } = &event.kind else {
            return None;
        };
        if module != "amdgpu" {
            return None;
        }
        let is_it = |name: &str| normalised(name) == normalised(parameter);
        let (source, says) = on_command_line(&words)
            .find(|(_, _, name, _)| is_it(name))
            .map(|(word, ..)| (COMMAND_LINE, word))
            .or_else(|| {
                let mut settings = in_files(view);
                let (path, line, ..) = settings.find(|(_, _, name, _)| is_it(name))?;
                Some((path, line))
            })?;
        let title = format!("amdgpu does not know the parameter {parameter} and ignores it");
        let finding = finding(title, source, says, parameter);
        Some(finding.saw(view.log_source(), event.says()))
    })
}

/// A value in modprobe's configuration that the loaded driver does not have.
fn not_in_effect(parameters: &Parameters, view: &View) -> Option<Finding> {
    // In a container the files are not those that the driver was loaded with.
    if view.driver_ground() != DriverGround::Own {
        return None;
    }
    let words = view.kernel_words().into_got()?;
    in_files(view).find_map(|(path, line, name, value)| {
        let has = parameters.get(name)?.got()?;
        // The command line goes before files, and of several files one may be for another purpose.
        let is_elsewhere = on_command_line(&words).any(|(_, _, other, _)| other == name)
            || in_files(view).any(|(_, _, other, other_value)| other == name && other_value != value);
        let differs = number(value)? != number(has)?;
        if !KEPT.contains(&name) || is_elsewhere || !differs {
            return None;
        }
        let finding = Finding::new(format!("{name}={value} for amdgpu is written down and not in effect"))
            .cause("initramfs-not-rebuilt")
            .severity(Severity::Note)
            .likely()
            .works_all_the_same()
            .saw(path, line)
            .saw(format!("{FOLDER}/{name}"), has.trim())
            .why("The driver was loaded with the copy of this file in the initramfs, or before the file was changed")
            .fix(FixCall::new("rebuild-initramfs"));
        Some(finding)
    })
}
