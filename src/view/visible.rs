//! Which devices a runtime numbers, in which order, and what the variables leave of them.

use super::access::Access;
use super::{Stack, View};
use crate::facts::Seen;

/// A device that a runtime shows to programs: a GPU, a partition of one, or a MIG device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// Key of the physical GPU; None: a KFD node that belongs to none that is known.
    pub gpu: Option<String>,
    /// KFD node, for ROCm.
    pub kfd_node: Option<u32>,
    /// UUID as the runtime writes it, lower case; None: not known, or it has none.
    pub uuid: Option<String>,
}

/// The devices that a variable may name, as far as they are known.
#[derive(Clone, Debug)]
pub struct Devices {
    /// In the runtime's order, MIG devices last: those have no number of their own.
    pub agents: Vec<Agent>,
    /// How many of them have numbers; None: that is not known.
    pub count: Option<usize>,
    /// Every UUID is known.
    pub uuids_known: bool,
    /// Every UUID of a MIG device is known.
    pub mig_known: bool,
    /// Whose list it is: the runtimes read theirs differently.
    pub reader: Reader,
}

/// Who reads a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// CUDA.
    Cuda,
    /// The ROCm runtime, `ROCR_VISIBLE_DEVICES`.
    Rocr,
    /// HIP, which numbers what the ROCm runtime leaves.
    Hip,
}

impl Reader {
    /// Values that stand for no device at all. HIP takes an empty one for none that is set, so it is not asked of it.
    fn is_for_none(self, value: &str) -> bool {
        let words = self == Reader::Cuda && matches!(value, "NoDevFiles" | "none");
        words || value == "-1" || (value.is_empty() && self != Reader::Hip)
    }
}

/// What a value does to the devices that it may name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It leaves these, by their place among the agents, in this order.
    Leaves(Vec<usize>),
    /// It leaves these and stops at an entry that is no device; true: devices that it names behind it stay hidden.
    Stops(Vec<usize>, String, bool),
    /// It leaves none: the cause, and why.
    Hides(&'static str, String),
    /// Cannot be told.
    Unclear(String),
}

impl Effect {
    /// The places that it leaves. None: cannot be told.
    pub fn left(self) -> Option<Vec<usize>> {
        match self {
            Effect::Leaves(left) | Effect::Stops(left, ..) => Some(left),
            Effect::Hides(..) => Some(Vec::new()),
            Effect::Unclear(_) => None,
        }
    }
}

/// `1 GPU`, `8 GPUs`.
pub fn gpus(count: usize) -> String {
    match count {
        1 => "1 GPU".to_owned(),
        count => format!("{count} GPUs"),
    }
}

/// NVML's answer where a GPU has no MIG.
const NOT_SUPPORTED: &str = "NOT_SUPPORTED";

impl Devices {
    fn none(reader: Reader) -> Devices {
        Devices {
            agents: Vec::new(),
            count: None,
            uuids_known: false,
            mig_known: false,
            reader,
        }
    }

    /// What HIP numbers where the ROCm runtime leaves these.
    #[must_use]
    pub fn left_to_hip(&self, left: Option<&[usize]>) -> Devices {
        let agents = match left {
            Some(left) => left
                .iter()
                .filter_map(|place| self.agents.get(*place).cloned())
                .collect(),
            None => self.agents.clone(),
        };
        Devices {
            count: match left {
                Some(left) => Some(left.len()),
                None => self.count,
            },
            agents,
            uuids_known: self.uuids_known,
            mig_known: self.mig_known,
            reader: Reader::Hip,
        }
    }

    /// Reads a list as the runtimes do: from the left, up to the first entry that is no device.
    pub fn effect(&self, value: &str) -> Effect {
        if self.reader.is_for_none(value) {
            return Effect::Hides("empty", "hides every GPU".to_owned());
        }
        if self.count == Some(0) {
            return Effect::Unclear("no GPU is held by the driver".to_owned());
        }
        let mut left = Vec::new();
        let entries: Vec<&str> = value.split(',').collect();
        for (position, entry) in entries.iter().enumerate() {
            match self.entry(entry) {
                Entry::Device(place) if !left.contains(&place) => left.push(place),
                // HIP takes a device that is named twice once (ROCm/clr `rocdevice.cpp`, read 2026-11-30).
                Entry::Device(_) if self.reader == Reader::Hip => {}
                Entry::Device(_) => {
                    return Effect::Unclear(format!("`{entry}` names a device a second time"));
                }
                Entry::Unclear(why) => return Effect::Unclear(why),
                Entry::None(cause, why) if left.is_empty() => return Effect::Hides(cause, why),
                Entry::None(..) => {
                    let behind = &entries[position + 1..];
                    let hides = behind.iter().any(|entry| match self.entry(entry) {
                        Entry::Device(place) => !left.contains(&place),
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

    fn entry(&self, written: &str) -> Entry {
        let entry = written.trim();
        if entry != written && !entry.is_empty() && self.reader == Reader::Hip {
            return Entry::Unclear(format!(
                "`{written}` with its space is read differently by different versions"
            ));
        }
        let lower = entry.to_ascii_lowercase();
        if lower.starts_with("mig-") {
            return self.mig(&lower, entry);
        }
        if lower.starts_with("gpu-") {
            return self.by_uuid(&lower, entry);
        }
        if let Ok(index) = entry.parse::<usize>() {
            return match self.count {
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
    fn by_uuid(&self, lower: &str, entry: &str) -> Entry {
        if !self.uuids_known {
            return Entry::Unclear("the UUIDs of the GPUs are not known".to_owned());
        }
        let mut fitting = self.agents.iter().enumerate().filter(|(_, agent)| {
            agent
                .uuid
                .as_ref()
                .is_some_and(|uuid| uuid.starts_with(lower))
        });
        match (fitting.next(), fitting.next()) {
            (Some((place, _)), None) => Entry::Device(place),
            (Some(_), Some(_)) => {
                Entry::None("unknown-uuid", format!("`{entry}` fits more than one GPU"))
            }
            (None, _) => Entry::None(
                "unknown-uuid",
                format!("no GPU here has the UUID `{entry}`"),
            ),
        }
    }

    /// A MIG device by its UUID. The older form `MIG-GPU-UUID/GI/CI` is not looked up.
    fn mig(&self, lower: &str, entry: &str) -> Entry {
        let place = self
            .agents
            .iter()
            .position(|agent| agent.uuid.as_deref() == Some(lower));
        match place {
            Some(place) => Entry::Device(place),
            None if self.mig_known && !lower.starts_with("mig-gpu-") => Entry::None(
                "unknown-uuid",
                format!("no MIG device here has the UUID `{entry}`"),
            ),
            None => Entry::Unclear("the MIG devices are not known".to_owned()),
        }
    }
}

enum Entry {
    Device(usize),
    None(&'static str, String),
    Unclear(String),
}

impl View<'_> {
    /// GPUs that CUDA numbers: those that NVML lists; where it did not answer, those that NVIDIA's driver holds and, in a
    /// container, that were passed in.
    pub fn cuda_devices(&self) -> Devices {
        if let Some(devices) = self.cuda_devices_of_nvml() {
            return devices;
        }
        let mut devices = Devices {
            count: self.gpus_whole.then_some(0),
            uuids_known: true,
            ..Devices::none(Reader::Cuda)
        };
        for gpu in self.gpus_of(Stack::Cuda).filter(|gpu| !gpu.remembered) {
            match (&gpu.driver, gpu.passed_in) {
                (_, Some(false)) => continue,
                // All of the host's GPUs are on the bus; without its number nobody can tell whether this one is in here.
                (_, None) if self.in_container() => devices.count = None,
                _ if self.in_container() && gpu.nvidia_minor.is_none() => devices.count = None,
                (Seen::Got(driver), _) if driver == "nvidia" => {}
                (Seen::Got(_) | Seen::Absent, _) => continue,
                _ => devices.count = None,
            }
            devices.count = devices.count.map(|count| count + 1);
            let proc = self.facts.nvidia_proc.got();
            let uuid = gpu.pci.as_ref().and_then(|address| {
                let information = proc?.gpus.entry(address).into_got()?.information.got()?;
                information
                    .get("GPU UUID")
                    .filter(|uuid| !uuid.contains('?'))
            });
            devices.uuids_known &= uuid.is_some();
            devices.agents.push(Agent {
                gpu: Some(gpu.key.clone()),
                kfd_node: None,
                uuid: uuid.map(|uuid| uuid.to_ascii_lowercase()),
            });
        }
        devices
    }

    /// NVML sees what CUDA sees, but for the variables.
    fn cuda_devices_of_nvml(&self) -> Option<Devices> {
        let nvml = self.facts.nvml.got()?;
        let mut listed: Vec<_> = nvml.devices.iter().collect();
        listed.sort_by_key(|(_, device)| device.index);
        let all = nvml.unreachable.is_empty()
            && nvml
                .count
                .got()
                .is_none_or(|count| *count as usize == listed.len());
        let mut devices = Devices {
            count: all.then_some(listed.len()),
            uuids_known: all,
            mig_known: all,
            ..Devices::none(Reader::Cuda)
        };
        let mut mig = Vec::new();
        for (address, device) in listed {
            let uuid = device.uuid.got();
            devices.uuids_known &= uuid.is_some();
            devices.agents.push(Agent {
                gpu: Some(self.key_of(address)),
                kfd_node: None,
                uuid: uuid.map(|uuid| uuid.to_ascii_lowercase()),
            });
            match (&*device.mig_mode, device.mig_uuids.got()) {
                (Seen::Got(mode), uuids) if mode == "enabled" => {
                    // CUDA numbers the MIG devices of such a GPU in its place, and shows one of them only.
                    devices.count = None;
                    devices.mig_known &= uuids.is_some();
                    mig.extend(uuids.into_iter().flatten().map(|uuid| Agent {
                        gpu: Some(self.key_of(address)),
                        kfd_node: None,
                        uuid: Some(uuid.to_ascii_lowercase()),
                    }));
                }
                (Seen::Got(_), _) => {}
                (mode, _) if mode.says(NOT_SUPPORTED) => {}
                _ => devices.mig_known = false,
            }
        }
        devices.agents.extend(mig);
        Some(devices)
    }

    /// The key of the GPU that a library knows by this address.
    fn key_of(&self, address: &str) -> String {
        let on_bus = self.gpus.iter().any(|gpu| gpu.key == address);
        match self.gpus.iter().find(|gpu| gpu.key == "dxg") {
            Some(gpu) if !on_bus => gpu.key.clone(),
            _ => address.to_owned(),
        }
    }

    /// Agents that the ROCm runtime numbers: KFD's nodes, partitions and integrated GPUs among them.
    pub fn rocm_devices(&self) -> Devices {
        let Some(kfd) = self.facts.kfd.got() else {
            return Devices::none(Reader::Rocr);
        };
        let mut numbers: Vec<u32> = kfd
            .nodes
            .items
            .keys()
            .filter_map(|name| name.parse().ok())
            .collect();
        numbers.sort_unstable();
        let mut devices = Devices {
            count: kfd.nodes.whole.then_some(0),
            uuids_known: true,
            ..Devices::none(Reader::Rocr)
        };
        for number in numbers {
            let Some(node) = kfd.nodes.items.get(&number.to_string()) else {
                continue;
            };
            let Seen::Got(properties) = &node.properties else {
                // A node that this container may not use does not show up in its runtime, but neither is it known to be a GPU.
                devices.count = None;
                continue;
            };
            if properties.get("simd_count").copied().unwrap_or(0) == 0 {
                continue;
            }
            devices.count = devices.count.map(|count| count + 1);
            // The runtime writes the unique id as `GPU-` and sixteen hexadecimal digits; most consumer cards have none.
            let uuid = node
                .unique_id
                .got()
                .and_then(|id| id.parse::<u64>().ok())
                .filter(|id| *id != 0)
                .map(|id| format!("gpu-{id:016x}"));
            devices.uuids_known &= uuid.is_some();
            let owner = self.gpus.iter().find(|gpu| gpu.kfd_nodes.contains(&number));
            devices.agents.push(Agent {
                gpu: owner.map(|gpu| gpu.key.clone()),
                kfd_node: Some(number),
                uuid,
            });
        }
        devices
    }

    /// The variable that HIP reads, with its value. An empty `HIP_VISIBLE_DEVICES` counts as not set, and then
    /// `CUDA_VISIBLE_DEVICES` is taken in its place, if it is not empty (ROCm/clr `rocdevice.cpp`, read 2026-11-30); where an
    /// NVIDIA GPU is here too, that one is most likely meant. `Absent`: none is set.
    ///
    /// # Errors
    /// Name of the variable that is not known, and why.
    pub fn hip_variable(&self) -> Result<Option<(&'static str, &str)>, (&'static str, String)> {
        let alias = self.gpus_of(Stack::Cuda).next().is_none();
        for name in ["HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"] {
            if name == "CUDA_VISIBLE_DEVICES" && !alias {
                break;
            }
            match self.variable(name) {
                Seen::Got(value) if !value.is_empty() => return Ok(Some((name, value))),
                Seen::Got(_) | Seen::Absent => {}
                other => return Err((name, other.why())),
            }
        }
        Ok(None)
    }

    /// The devices that a CUDA program of this environment finds, in its order. None: not known.
    pub fn cuda_order(&self) -> Option<Vec<Agent>> {
        // Without an answer of NVML nobody knows whether the driver works at all.
        self.facts.nvml.got()?;
        let devices = self.cuda_devices();
        let count = devices.count?;
        // By default the fastest GPU comes first, and the order of the rest is not laid down: of GPUs of one model it is
        // that of their addresses.
        let by_address = match self.variable("CUDA_DEVICE_ORDER") {
            Seen::Got(order) => order == "PCI_BUS_ID",
            Seen::Absent => false,
            _ if count > 1 => return None,
            _ => false,
        };
        if !by_address && !self.is_of_one_model(&devices.agents[..count]) {
            return None;
        }
        let left = match self.variable("CUDA_VISIBLE_DEVICES") {
            Seen::Absent => (0..count).collect(),
            Seen::Got(value) => devices.effect(value).left()?,
            _ => return None,
        };
        Some(taken(&devices, &left))
    }

    /// True also of a single one.
    fn is_of_one_model(&self, agents: &[Agent]) -> bool {
        let id = |agent: &Agent| {
            let key = agent.gpu.as_ref()?;
            self.gpus.iter().find(|gpu| gpu.key == *key)?.id
        };
        match agents {
            [] | [_] => true,
            [first, rest @ ..] => {
                let first = id(first);
                first.is_some() && rest.iter().all(|agent| id(agent) == first)
            }
        }
    }

    /// The agents that a HIP program of this environment finds, in its order. None: not known, as where one of their nodes is
    /// not known to open: the runtime leaves such a GPU out or finds none at all.
    pub fn hip_order(&self) -> Option<Vec<Agent>> {
        let nodes = self.nodes_of(Stack::Rocm);
        let opens = |path: &str| matches!(self.access(path), Access::Allowed(_));
        nodes
            .iter()
            .all(|node| node.npu || opens(&node.path))
            .then(|| self.left_to_hip())?
    }

    /// The agents that the variables leave to a HIP program. None: not known.
    pub(super) fn left_to_hip(&self) -> Option<Vec<Agent>> {
        let devices = self.rocm_devices();
        let count = devices.count?;
        let left_by_rocr = match self.variable("ROCR_VISIBLE_DEVICES") {
            Seen::Absent => (0..count).collect(),
            Seen::Got(value) => devices.effect(value).left()?,
            _ => return None,
        };
        // HIP has nothing to read then.
        if left_by_rocr.is_empty() {
            return Some(Vec::new());
        }
        let devices = devices.left_to_hip(Some(&left_by_rocr));
        let left = match self.hip_variable().ok()? {
            None => (0..left_by_rocr.len()).collect(),
            Some((_, value)) => devices.effect(value).left()?,
        };
        Some(taken(&devices, &left))
    }
}

fn taken(devices: &Devices, left: &[usize]) -> Vec<Agent> {
    left.iter()
        .filter_map(|place| devices.agents.get(*place).cloned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn eight() -> Devices {
        let agent = |number| Agent {
            gpu: None,
            kfd_node: None,
            uuid: Some(format!("gpu-0000001{number}-0000-4000-8000-000000000000")),
        };
        Devices {
            agents: (0..8).map(agent).collect(),
            count: Some(8),
            uuids_known: true,
            mig_known: false,
            reader: Reader::Cuda,
        }
    }

    fn hides(value: &str) -> Option<bool> {
        match eight().effect(value) {
            Effect::Stops(_, _, hides) => Some(hides),
            _ => None,
        }
    }

    fn left(value: &str, devices: &Devices) -> Result<Vec<usize>, &'static str> {
        match devices.effect(value) {
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
        let hip = eight().left_to_hip(None);
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
        let unknown = Devices::none(Reader::Rocr);
        assert_eq!(left("0", &unknown), Err("unclear"));
        assert_eq!(left("GPU-00000012", &unknown), Err("unclear"));
        assert_eq!(left("MIG-00000012", &eight()), Err("unclear"));
        assert_eq!(left("3x", &eight()), Err("unclear"));
    }

    #[test]
    fn mig_devices_are_named_by_their_uuid() {
        let mut devices = eight();
        devices.agents.push(Agent {
            gpu: None,
            kfd_node: None,
            uuid: Some("mig-1".to_owned()),
        });
        devices.mig_known = true;
        assert_eq!(left("MIG-1", &devices), Ok(vec![8]));
        assert_eq!(left("MIG-2", &devices), Err("unknown-uuid"));
        assert_eq!(left("MIG-GPU-1/2/0", &devices), Err("unclear"));
        assert_eq!(left("8", &devices), Err("invalid-entry"));
    }
}
