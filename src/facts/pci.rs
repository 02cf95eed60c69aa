//! The PCI bus as sysfs shows it.

use super::{Named, Seen};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `/sys/bus/pci/devices`, keyed by address (`0000:01:00.0`, lower case).
pub type PciBus = Named<PciFunction>;

/// One PCI function. Identity is read of every function, `detail` only of GPUs, NPUs, co-processors and the bridges above
/// them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct PciFunction {
    /// Folder of the function below `/sys/devices`, links resolved; its ancestors are the bridges above it.
    pub path: Seen<String>,
    /// Vendor id. The kernel's stored copy: it never changes after the device is gone.
    pub vendor: Seen<u16>,
    /// Device id; a stored copy too.
    pub device: Seen<u16>,
    /// Class code, 24 bits: `0x030000` is a VGA controller.
    pub class: Seen<u32>,
    /// Revision id; read of GPUs, NPUs and co-processors.
    pub revision: Seen<u8>,
    /// Subsystem vendor id.
    pub subsystem_vendor: Seen<u16>,
    /// Subsystem device id.
    pub subsystem_device: Seen<u16>,
    /// Kernel driver that is bound, from `uevent` and the `driver` link. `Absent`: proved unbound.
    pub driver: Seen<String>,
    /// The rest, where it was asked for.
    pub detail: Option<Box<PciDetail>>,
}

/// What is read of a GPU and of the bridges above it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct PciDetail {
    /// `power/runtime_status`: `active`, `suspended`, `unsupported`, ...; read before anything else.
    pub runtime_status: Seen<String>,
    /// `power/control`: `on` or `auto`.
    pub power_control: Seen<String>,
    /// `power_state`: `D0`, `D3cold`, `unknown`, ...
    pub power_state: Seen<String>,
    /// `enable` is not 0.
    pub enabled: Seen<bool>,
    /// `boot_vga` is 1.
    pub boot_vga: Seen<bool>,
    /// `numa_node`; -1 means none.
    pub numa_node: Seen<i32>,
    /// Number of the IOMMU group, the last part of the `iommu_group` link.
    pub iommu_group: Seen<String>,
    /// `type` of that group: `DMA` and `DMA-FQ` translate what the device accesses, `identity` does not. `Absent`: the device
    /// is in no group.
    pub iommu_type: Seen<String>,
    /// `driver_override`: the one driver that may take the device, as `driverctl` and `virsh` set it. `Absent`: none is set.
    pub driver_override: Seen<String>,
    /// `removable`: `fixed`, `removable`, `unknown`.
    pub removable: Seen<String>,
    /// Address of the physical function, where this one is a virtual function.
    pub physfn: Seen<String>,
    /// `current_link_speed`, as written: `16.0 GT/s PCIe`.
    pub current_link_speed: Seen<String>,
    /// `current_link_width` in lanes.
    pub current_link_width: Seen<u32>,
    /// `max_link_speed`, as written.
    pub max_link_speed: Seen<String>,
    /// `max_link_width` in lanes.
    pub max_link_width: Seen<u32>,
    /// Base address registers with a size, from `resource`.
    pub bars: Seen<Vec<Bar>>,
    /// First 64 bytes of `config` in hexadecimal. Read only while the device is active; 0xff throughout means that it does
    /// not answer.
    pub config: Seen<String>,
}

/// A base address register.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Bar {
    /// Line of the `resource` file, 0 to 5.
    pub index: u8,
    /// Size in bytes.
    pub bytes: u64,
    /// It has an address: the kernel found room for it.
    pub assigned: bool,
    /// 64-bit prefetchable memory, the kind that Resizable BAR enlarges.
    pub prefetchable: bool,
}

/// Names from the system's `pci.ids`, for the ids that are on this bus.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct PciNames {
    /// The file they come from.
    pub path: String,
    /// Vendor names by id (`10de`).
    pub vendors: BTreeMap<String, String>,
    /// Device names by `vendor:device` (`10de:2684`).
    pub devices: BTreeMap<String, String>,
    /// Subsystem names by `vendor:device:subvendor:subdevice`.
    pub subsystems: BTreeMap<String, String>,
}
