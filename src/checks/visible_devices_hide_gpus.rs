//! A `*_VISIBLE_DEVICES` variable hides every GPU from the programs of this shell.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::{Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::{Stack, View};

crate::check! {
    /// A variable in this environment hides GPUs from the programs started in it.
    ///
    /// ## Why it matters
    /// The runtime shows a program only the devices that the variable names. A program that is shown none says that there is
    /// no GPU, although `nvidia-smi` and `rocm-smi` list all of them: those do not look at the variable.
    ///
    /// ## How it comes about
    /// CUDA and HIP read the list from the left and stop at the first entry that is no device: `0,9,1` shows one GPU, `9,0`
    /// shows none. An empty `CUDA_VISIBLE_DEVICES` hides all, which is not the same as none being set. On AMD,
    /// `ROCR_VISIBLE_DEVICES` comes first and the numbers of `HIP_VISIBLE_DEVICES` count what is left of it. UUIDs copied from
    /// another machine fit nothing here. Job schedulers set these variables on purpose.
    ///
    /// ## How to confirm
    /// `env | grep VISIBLE_DEVICES`, and the program once more under `env -u NAME`.
    "visible-devices-hide-gpus", Runtime, Error, each Stack, run
}

/// The devices that a variable may name, as far as they are known.
struct Devices {
    /// How many; None: not known.
    count: Option<usize>,
    /// Their UUIDs in order, lower case; None: not all are known.
    uuids: Option<Vec<String>>,
    /// Whose list it is: the runtimes read theirs differently.
    reader: Reader,
}

/// Who reads a list.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reader {
    Cuda,
    Rocr,
    Hip,
}

/// What a value does to the devices that it may name.
enum Effect {
    /// It leaves these, by index.
    Leaves(Vec<usize>),
    /// It leaves these and stops at an entry that is no device; true: devices that it names behind it stay hidden.
    Stops(Vec<usize>, String, bool),
    /// It leaves none: the cause, and why.
    Hides(&'static str, String),
    /// Cannot be told.
    Unclear(String),
}

fn run(stack: Stack, view: &View, _: &Tables) -> Verdict {
    // An affinity mask that fits nothing is refused with a message of its own.
    if stack == Stack::LevelZero {
        return Verdict::NotHere;
    }
    if view.gpus_of(stack).next().is_none() {
        return if view.gpus_whole {
            Verdict::NotHere
        } else {
            Verdict::cannot_tell("which GPUs are here is not known", "`lspci -nn`")
        };
    }
    match stack {
        Stack::Rocm => rocm(view),
        Stack::Cuda | Stack::LevelZero => cuda(view),
    }
}

fn cuda(view: &View) -> Verdict {
    const NAME: &str = "CUDA_VISIBLE_DEVICES";
    let value = match view.variable(NAME) {
        Seen::Got(value) => value,
        Seen::Absent => return Verdict::fine(format!("{NAME} is not set")),
        other => return unknown_environment(NAME, &other.why()),
    };
    if value.is_empty() || matches!(value, "-1" | "NoDevFiles" | "none") {
        let why = if value.is_empty() {
            format!("{NAME} is set to nothing, which hides every GPU")
        } else {
            format!("{NAME}={value} hides every GPU")
        };
        return hidden(NAME, value, "empty", why, view);
    }
    match effect(value, &cuda_devices(view)) {
        Effect::Leaves(left) => leaves(NAME, value, left.len()),
        Effect::Stops(left, entry, hides) => stops(NAME, value, left.len(), &entry, hides, view),
        Effect::Hides(cause, why) => {
            hidden(NAME, value, cause, format!("{NAME}={value}: {why}"), view)
        }
        Effect::Unclear(why) => {
            Verdict::cannot_tell(format!("{NAME}={value}: {why}"), "`nvidia-smi -L`")
        }
    }
}

/// HIP numbers what `ROCR_VISIBLE_DEVICES` leaves.
fn rocm(view: &View) -> Verdict {
    const NAME: &str = "ROCR_VISIBLE_DEVICES";
    let mut devices = rocm_devices(view);
    match view.variable(NAME) {
        Seen::Got(value) if value.is_empty() || value == "-1" => {
            let why = if value.is_empty() {
                format!("{NAME} is set to nothing, which hides every GPU")
            } else {
                format!("{NAME}=-1 hides every GPU")
            };
            hidden(NAME, value, "empty", why, view)
        }
        Seen::Got(value) => {
            let (left, verdict) = match effect(value, &devices) {
                Effect::Leaves(left) => {
                    let verdict = leaves(NAME, value, left.len());
                    (left, verdict)
                }
                Effect::Stops(left, entry, hides) => {
                    let verdict = stops(NAME, value, left.len(), &entry, hides, view);
                    (left, verdict)
                }
                Effect::Hides(cause, why) => {
                    return hidden(NAME, value, cause, format!("{NAME}={value}: {why}"), view);
                }
                Effect::Unclear(why) => {
                    return Verdict::cannot_tell(format!("{NAME}={value}: {why}"), "`rocminfo`");
                }
            };
            devices.count = Some(left.len());
            devices.uuids = devices.uuids.map(|all| {
                left.iter()
                    .filter_map(|index| all.get(*index).cloned())
                    .collect()
            });
            // What HIP makes of the rest counts, and only where that is fine what was said of the first list.
            match hip(&devices, Some((value, left.len())), view) {
                None | Some(Verdict::Fine(_)) => verdict,
                Some(other) => other,
            }
        }
        Seen::Absent => {
            hip(&devices, None, view).unwrap_or_else(|| Verdict::fine("no variable hides a GPU"))
        }
        other => unknown_environment(NAME, &other.why()),
    }
}

/// An empty `HIP_VISIBLE_DEVICES` counts as not set, and then `CUDA_VISIBLE_DEVICES` is taken in its place, if it is not
/// empty (ROCm/clr `rocdevice.cpp`, read 2026-11-30). None: neither says anything.
fn hip(devices: &Devices, rocr: Option<(&str, usize)>, view: &View) -> Option<Verdict> {
    let devices = &Devices {
        count: devices.count,
        uuids: devices.uuids.clone(),
        reader: Reader::Hip,
    };
    let mut read = None;
    // Where an NVIDIA GPU is here too, CUDA_VISIBLE_DEVICES is most likely meant for that one.
    let alias = view.gpus_of(Stack::Cuda).next().is_none();
    for name in ["HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"] {
        if read.is_some() || (name == "CUDA_VISIBLE_DEVICES" && !alias) {
            break;
        }
        match view.variable(name) {
            Seen::Got(value) if !value.is_empty() => read = Some((name, value)),
            Seen::Got(_) | Seen::Absent => {}
            other => return Some(unknown_environment(name, &other.why())),
        }
    }
    let (name, value) = read?;
    if value == "-1" {
        let why = format!("{name}=-1 hides every GPU");
        return Some(hidden(name, value, "empty", why, view));
    }
    Some(match (effect(value, devices), rocr) {
        (Effect::Leaves(left), _) => leaves(name, value, left.len()),
        (Effect::Stops(left, entry, hides), _) => {
            stops(name, value, left.len(), &entry, hides, view)
        }
        (Effect::Hides("invalid-entry", _), Some((rocr, count))) => {
            let why = format!(
                "{name}={value} counts what ROCR_VISIBLE_DEVICES={rocr} leaves, which is {}: none is left",
                gpus(count)
            );
            let finding = hides(name, value, "conflict", why).saw("ROCR_VISIBLE_DEVICES", rocr);
            in_job(finding, view).into()
        }
        (Effect::Hides(cause, why), _) => {
            hidden(name, value, cause, format!("{name}={value}: {why}"), view)
        }
        (Effect::Unclear(why), _) => {
            Verdict::cannot_tell(format!("{name}={value}: {why}"), "`rocminfo`")
        }
    })
}

fn leaves(name: &str, value: &str, count: usize) -> Verdict {
    Verdict::fine(format!("{name}={value} leaves {}", gpus(count)))
}

fn gpus(count: usize) -> String {
    match count {
        1 => "1 GPU".to_owned(),
        count => format!("{count} GPUs"),
    }
}

fn unknown_environment(name: &str, why: &str) -> Verdict {
    Verdict::cannot_tell(
        format!("{name}: {why}"),
        format!("`echo \"${{{name}-not set}}\"` in the shell whose program fails"),
    )
}

/// GPUs that CUDA numbers: those that NVIDIA's driver holds and, in a container, that were passed in.
fn cuda_devices(view: &View) -> Devices {
    let mut count = view.gpus_whole.then_some(0);
    let mut uuids = Some(Vec::new());
    for gpu in view.gpus_of(Stack::Cuda).filter(|gpu| !gpu.remembered) {
        match (&gpu.driver, gpu.passed_in) {
            (_, Some(false)) => continue,
            // All of the host's GPUs are on the bus; without its number nobody can tell whether this one is in here.
            (_, None) if view.in_container() => count = None,
            _ if view.in_container() && gpu.nvidia_minor.is_none() => count = None,
            (Seen::Got(driver), _) if driver == "nvidia" => {}
            (Seen::Got(_) | Seen::Absent, _) => continue,
            _ => count = None,
        }
        count = count.map(|count| count + 1);
        let proc = view.facts.nvidia_proc.got();
        let uuid = gpu.pci.as_ref().and_then(|address| {
            let information = proc?.gpus.entry(address).into_got()?.information.got()?;
            information
                .get("GPU UUID")
                .filter(|uuid| !uuid.contains('?'))
        });
        match (uuid, &mut uuids) {
            (Some(uuid), Some(list)) => list.push(uuid.to_ascii_lowercase()),
            _ => uuids = None,
        }
    }
    Devices {
        count,
        uuids,
        reader: Reader::Cuda,
    }
}

/// Agents that the ROCm runtime numbers: KFD's nodes, partitions and integrated GPUs among them.
fn rocm_devices(view: &View) -> Devices {
    let Some(kfd) = view.facts.kfd.got() else {
        return Devices {
            count: None,
            uuids: None,
            reader: Reader::Rocr,
        };
    };
    let mut numbers: Vec<u32> = kfd
        .nodes
        .items
        .keys()
        .filter_map(|name| name.parse().ok())
        .collect();
    numbers.sort_unstable();
    let mut count = kfd.nodes.whole.then_some(0);
    let mut uuids = Some(Vec::new());
    for number in numbers {
        let Some(node) = kfd.nodes.items.get(&number.to_string()) else {
            continue;
        };
        let Seen::Got(properties) = &node.properties else {
            // A node that this container may not use does not show up in its runtime, but neither is it known to be a GPU.
            count = None;
            continue;
        };
        if properties.get("simd_count").copied().unwrap_or(0) == 0 {
            continue;
        }
        count = count.map(|count| count + 1);
        // The runtime writes the unique id as `GPU-` and sixteen hexadecimal digits; most consumer cards have none.
        let uuid = node
            .unique_id
            .got()
            .and_then(|id| id.parse::<u64>().ok())
            .filter(|id| *id != 0);
        match (uuid, &mut uuids) {
            (Some(id), Some(list)) => list.push(format!("gpu-{id:016x}")),
            _ => uuids = None,
        }
    }
    Devices {
        count,
        uuids,
        reader: Reader::Rocr,
    }
}

/// Reads a list as the runtimes do: from the left, up to the first entry that is no device.
fn effect(value: &str, devices: &Devices) -> Effect {
    if devices.count == Some(0) {
        return Effect::Unclear("no GPU is held by the driver".to_owned());
    }
    let mut left = Vec::new();
    let entries: Vec<&str> = value.split(',').collect();
    for (position, entry) in entries.iter().enumerate() {
        match device(entry, devices) {
            Entry::Device(index) if !left.contains(&index) => left.push(index),
            // HIP takes a device that is named twice once (ROCm/clr `rocdevice.cpp`, read 2026-11-30).
            Entry::Device(_) if devices.reader == Reader::Hip => {}
            Entry::Device(_) => {
                return Effect::Unclear(format!("`{entry}` names a device a second time"));
            }
            Entry::Unclear(why) => return Effect::Unclear(why),
            Entry::None(cause, why) if left.is_empty() => return Effect::Hides(cause, why),
            Entry::None(..) => {
                let behind = &entries[position + 1..];
                let hides = behind.iter().any(|entry| match device(entry, devices) {
                    Entry::Device(index) => !left.contains(&index),
                    Entry::Unclear(_) => true,
                    Entry::None(..) => false,
                });
                let entry = entry.trim();
                // A comma at the end, or -1, ends a list on purpose.
                if entry == "-1" || (entry.is_empty() && behind.is_empty()) {
                    return Effect::Leaves(left);
                }
                return Effect::Stops(left, entry.to_owned(), hides);
            }
        }
    }
    Effect::Leaves(left)
}

enum Entry {
    Device(usize),
    None(&'static str, String),
    Unclear(String),
}

fn device(written: &str, devices: &Devices) -> Entry {
    let entry = written.trim();
    if entry != written && !entry.is_empty() && devices.reader == Reader::Hip {
        return Entry::Unclear(format!(
            "`{written}` with its space is read differently by different versions"
        ));
    }
    let lower = entry.to_ascii_lowercase();
    if lower.starts_with("mig-") {
        return Entry::Unclear("MIG instances are known to NVML alone".to_owned());
    }
    if lower.starts_with("gpu-") {
        return by_uuid(&lower, entry, devices);
    }
    if let Ok(index) = entry.parse::<usize>() {
        return match devices.count {
            Some(count) if index < count => Entry::Device(index),
            Some(count) => Entry::None(
                "invalid-entry",
                format!("there is no number {index} among {}", gpus(count)),
            ),
            None => Entry::Unclear("how many GPUs the runtime numbers is not known".to_owned()),
        };
    }
    // What begins with a digit some versions read up to the last digit.
    if entry.starts_with(|first: char| first.is_ascii_digit()) {
        return Entry::Unclear(format!(
            "`{entry}` is read differently by different versions"
        ));
    }
    Entry::None("invalid-entry", format!("`{entry}` is no device"))
}

/// An abbreviated UUID is right where it fits exactly one GPU.
fn by_uuid(lower: &str, entry: &str, devices: &Devices) -> Entry {
    let Some(uuids) = &devices.uuids else {
        return Entry::Unclear("the UUIDs of the GPUs are not known".to_owned());
    };
    let mut fitting = uuids
        .iter()
        .enumerate()
        .filter(|(_, uuid)| uuid.starts_with(lower));
    match (fitting.next(), fitting.next()) {
        (Some((index, _)), None) => Entry::Device(index),
        (Some(_), Some(_)) => {
            Entry::None("unknown-uuid", format!("`{entry}` fits more than one GPU"))
        }
        (None, _) => Entry::None(
            "unknown-uuid",
            format!("no GPU here has the UUID `{entry}`"),
        ),
    }
}

/// A scheduler that runs this shell as a job sets such variables on purpose.
fn job(view: &View) -> Option<&'static str> {
    [
        "SLURM_JOB_ID",
        "PBS_JOBID",
        "LSB_JOBID",
        "KUBERNETES_SERVICE_HOST",
    ]
    .into_iter()
    .find(|name| view.variable(name).got().is_some())
}

fn hidden(name: &str, value: &str, cause: &'static str, title: String, view: &View) -> Verdict {
    in_job(hides(name, value, cause, title), view).into()
}

fn hides(name: &str, value: &str, cause: &'static str, title: String) -> Finding {
    let fix = if cause == "empty" || cause == "conflict" {
        "unset-variable"
    } else {
        "correct-variable"
    };
    Finding::new(title)
        .cause(cause)
        .saw(name, if value.is_empty() { "set to nothing" } else { value })
        .why("Programs started from this shell find no GPU; nvidia-smi and rocm-smi do not look at the variable")
        .fix(FixCall::new(fix).with("name", name))
}

/// Works, with fewer GPUs than the list names.
fn stops(name: &str, value: &str, left: usize, entry: &str, hides: bool, view: &View) -> Verdict {
    let severity = if hides {
        Severity::Warning
    } else {
        Severity::Note
    };
    let why = if hides {
        "What is named behind that entry stays hidden from programs started from this shell"
    } else {
        "Programs started from this shell find fewer GPUs than the list names"
    };
    let finding = Finding::new(format!(
        "{name}={value}: reading stops at `{entry}`, which is no device here; {} shown",
        gpus(left)
    ))
    .cause("invalid-entry")
    .severity(severity)
    .saw(name, value)
    .why(why)
    .fix(FixCall::new("correct-variable").with("name", name));
    in_job(finding, view).into()
}

fn in_job(mut finding: Finding, view: &View) -> Finding {
    let Some(scheduler) = job(view) else {
        return finding;
    };
    // Whoever changes the variable takes GPUs that were given to somebody else.
    finding.fixes = vec![FixCall::new("ask-scheduler")];
    finding.severity(Severity::Note).saw(
        scheduler,
        "set: a scheduler runs this shell and may hide GPUs on purpose",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn eight() -> Devices {
        let uuids = (0..8).map(|number| format!("gpu-0000001{number}-0000-4000-8000-000000000000"));
        Devices {
            count: Some(8),
            uuids: Some(uuids.collect()),
            reader: Reader::Cuda,
        }
    }

    fn hides(value: &str) -> Option<bool> {
        match effect(value, &eight()) {
            Effect::Stops(_, _, hides) => Some(hides),
            _ => None,
        }
    }

    fn left(value: &str, devices: &Devices) -> Result<Vec<usize>, &'static str> {
        match effect(value, devices) {
            Effect::Leaves(left) | Effect::Stops(left, ..) => Ok(left),
            Effect::Hides(cause, _) => Err(cause),
            Effect::Unclear(_) => Err("unclear"),
        }
    }

    #[test]
    fn reading_stops_at_the_first_entry_that_is_no_device() {
        assert_eq!(left("0,9,1", &eight()), Ok(vec![0]));
        assert_eq!(left("9,0", &eight()), Err("invalid-entry"));
        assert_eq!(left("2", &eight()), Ok(vec![2]));
        assert_eq!(left("-bash", &eight()), Err("invalid-entry"));
        assert_eq!(left("all", &eight()), Err("invalid-entry"));
    }

    #[test]
    fn a_stop_is_loud_only_where_it_hides_something() {
        assert_eq!(hides("0,9,1"), Some(true));
        assert_eq!(hides("0,1,8,9"), Some(false));
        assert_eq!(hides("0,9,0"), Some(false));
        assert_eq!(hides("0,1,"), None);
        assert_eq!(hides("0,-1"), None);
        assert_eq!(hides("0,1"), None);
    }

    #[test]
    fn what_the_runtimes_read_differently_is_not_judged() {
        assert_eq!(left("0,0", &eight()), Err("unclear"));
        assert_eq!(left("0, 1", &eight()), Ok(vec![0, 1]));
        let hip = Devices {
            reader: Reader::Hip,
            ..eight()
        };
        assert_eq!(left("0,0", &hip), Ok(vec![0]));
        assert_eq!(left("0, 1", &hip), Err("unclear"));
        let none = Devices {
            count: Some(0),
            ..eight()
        };
        assert_eq!(left("0", &none), Err("unclear"));
    }

    #[test]
    fn an_abbreviated_uuid_must_fit_exactly_one() {
        assert_eq!(left("GPU-00000012", &eight()), Ok(vec![2]));
        assert_eq!(left("GPU-0000001", &eight()), Err("unknown-uuid"));
        assert_eq!(left("GPU-00000777", &eight()), Err("unknown-uuid"));
    }

    #[test]
    fn what_is_not_known_is_not_judged() {
        let unknown = Devices {
            count: None,
            uuids: None,
            reader: Reader::Rocr,
        };
        assert_eq!(left("0", &unknown), Err("unclear"));
        assert_eq!(left("GPU-00000012", &unknown), Err("unclear"));
        assert_eq!(left("MIG-00000012", &eight()), Err("unclear"));
        assert_eq!(left("3x", &eight()), Err("unclear"));
    }
}
