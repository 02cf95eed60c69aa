//! A virtual machine that nobody gave a GPU.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::{Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::View;

crate::check! {
    /// This is a virtual machine, and no GPU is passed through to it.
    ///
    /// ## Why it matters
    /// Whatever is installed in here, there is nothing to compute on. It is an error where somebody asked for a GPU with
    /// `--require`.
    ///
    /// ## How it comes about
    /// The type of a rented instance has no GPU, or its host took it away; the host of a machine of one's own does not pass one
    /// through. A virtual display (QXL, virtio, VMware, Hyper-V) draws and computes nothing.
    ///
    /// ## How to confirm
    /// `lspci -nn | grep -Ei 'vga|3d|display'`; `systemd-detect-virt`.
    "vm-without-gpu", Bus, Note, each Machine, run
}

fn run(view: &View, _: &Tables) -> Verdict {
    if !view.gpus.is_empty() || view.wsl().is_some() {
        return Verdict::NotHere;
    }
    let display = view
        .not_gpus
        .iter()
        .find(|device| device.kind == "virtual display");
    let hypervisor = view.hypervisor();
    if hypervisor.is_none() && display.is_none() {
        let vendor = view.facts.dmi.as_ref().and_then(|dmi| dmi.vendor.as_ref());
        return match vendor {
            Seen::Got(_) | Seen::Absent => Verdict::NotHere,
            other => Verdict::cannot_tell(
                format!(
                    "whether this is a virtual machine: {}",
                    other.map(|_| ()).why()
                ),
                "`systemd-detect-virt`",
            ),
        };
    }
    // A container may see less than its machine has.
    if view.in_container() {
        return Verdict::NotHere;
    }
    // What was recorded of a bus may be a part of it; a virtual display on it points to the answer all the same.
    let all_known = view
        .facts
        .pci
        .items()
        .all(|(_, function)| function.class.got().is_some());
    if !(view.gpus_whole || display.is_some() && all_known) {
        return Verdict::cannot_tell(view.why_gpus_are_unknown(), "`lspci -nn`");
    }
    let dmi = view.facts.dmi.got();
    let vendor = dmi.and_then(|dmi| dmi.vendor.got()).map(String::as_str);
    let product = dmi.and_then(|dmi| dmi.product.got()).map(String::as_str);
    let is_rented = [
        "Amazon EC2",
        "Google",
        "Alibaba Cloud",
        "DigitalOcean",
        "OpenStack Foundation",
        "Hetzner",
        "Vultr",
    ]
    .iter()
    .any(|cloud| vendor.is_some_and(|vendor| vendor.contains(cloud)));
    let mut finding = Finding::new("this virtual machine has no GPU")
        .cause(if is_rented {
            "cloud-instance-type"
        } else {
            "no-passthrough"
        })
        .why("Whatever is installed in here, there is nothing to compute on")
        .fix(FixCall::new(if is_rented {
            "instance-with-gpu"
        } else {
            "pass-gpu-through"
        }));
    if let Some(vendor) = vendor {
        finding = finding.saw("/sys/class/dmi/id/sys_vendor", vendor);
    }
    match (display, product, hypervisor) {
        (Some(device), ..) => {
            let name = device.name.as_deref().unwrap_or("a display");
            let source = format!("/sys/bus/pci/devices/{}", device.pci);
            finding = finding.saw(source, format!("{name}: a virtual display"));
        }
        (None, Some(product), _) => {
            finding = finding.saw("/sys/class/dmi/id/product_name", product)
        }
        (None, None, Some(name)) => finding = finding.saw("/proc/cpuinfo", name),
        (None, None, None) => {}
    }
    finding = finding.saw("/sys/bus/pci/devices", "no GPU among them");
    if !view.gpus_whole {
        return finding.likely().into();
    }
    match view.required.is_empty() {
        true => finding.into(),
        false => finding.severity(Severity::Error).into(),
    }
}
