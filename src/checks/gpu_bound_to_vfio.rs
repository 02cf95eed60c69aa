//! A GPU is held for virtual machines.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::{Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::{Gpu, Stack, View, Wanted};

crate::check! {
    /// A GPU is held by a driver that keeps it for virtual machines, so programs of this system cannot use it.
    ///
    /// ## Why it matters
    /// One driver holds a GPU at a time. While `vfio-pci`, `pci-stub` or `xen-pciback` has it, neither the vendor's driver nor
    /// any program on this system sees it. On a host of virtual machines that is what somebody wanted.
    ///
    /// ## How it comes about
    /// `vfio-pci.ids=` on the kernel command line or `options vfio-pci ids=` in /etc/modprobe.d names the kind of card. Of two
    /// equal cards that takes both. `driverctl set-override` names a single card by its address, and libvirt takes one while a
    /// virtual machine uses it.
    ///
    /// ## How to confirm
    /// `lspci -nnk` names the driver in use; `cat /proc/cmdline`, `grep -r vfio /etc/modprobe.d` and `driverctl list-overrides`
    /// name what claims it.
    "gpu-bound-to-vfio", Driver, Warning, each Gpu, run
}

/// What starts virtual machines; those that give their nodes to Kubernetes do so through KubeVirt or Kata.
const GUEST_UNITS: [&str; 6] = [
    "incus.service",
    "k3s.service",
    "kubelet.service",
    "libvirtd.service",
    "snap.lxd.daemon.service",
    "virtqemud.service",
];

fn run(gpu: &Gpu, view: &View, _: &Tables) -> Verdict {
    if view.wsl().is_some() || !gpu.is_on_bus() {
        return Verdict::NotHere;
    }
    let source = gpu.driver_source.as_str();
    let driver = match &gpu.driver {
        Seen::Got(driver) => driver.as_str(),
        Seen::Absent => return Verdict::NotHere,
        other => return Verdict::cannot_tell(format!("{source}: {}", other.why()), gpu.lspci()),
    };
    if !gpu.is_set_aside() {
        return Verdict::fine(format!("bound to {driver}"));
    }
    let Some(stack) = Stack::ALL
        .into_iter()
        .find(|stack| stack.vendor() == gpu.vendor)
    else {
        return Verdict::NotHere;
    };
    let mut finding = Finding::new(format!(
        "this GPU is kept for virtual machines: {driver} holds it"
    ))
    .saw(source, driver)
    .why("Programs of this system see it only when a driver of its vendor holds it");
    let claim = view.claim_for_guests(gpu);
    let overridden = view
        .detail_of(gpu)
        .and_then(|detail| detail.driver_override.got())
        .filter(|name| *name == driver);
    let fix = match (&claim, overridden) {
        (Some(claim), _) if claim.source == "/proc/cmdline" => {
            match is_of_slot(gpu, &claim.says, view) {
                true => FixCall::new("remove-kernel-parameter").with("word", &claim.says),
                false => FixCall::new("give-gpu-back-by-parameter")
                    .with("word", &claim.says)
                    .with("name", id(gpu)),
            }
        }
        (Some(claim), _) => FixCall::new("give-gpu-back-to-host")
            .with("name", id(gpu))
            .with("file", &claim.source)
            .with("line", &claim.says),
        (None, Some(name)) => FixCall::new("remove-driver-override").with("name", name),
        (None, None) => FixCall::new("find-who-claims-gpu"),
    };
    if let Some(claim) = claim {
        finding = finding.saw(claim.source, claim.says);
    }
    if let (Some(name), Some(address)) = (overridden, &gpu.pci) {
        finding = finding.saw(
            format!("/sys/bus/pci/devices/{address}/driver_override"),
            name,
        );
    }
    if let Some(says) = guests(view) {
        return finding
            .severity(Severity::Note)
            .saw(says.0, says.1)
            .why("This is a host of virtual machines, so that is most likely what somebody wanted")
            .into();
    }
    let others: Vec<&Gpu> = view
        .gpus_of(stack)
        .filter(|other| other.key != gpu.key && other.is_on_bus())
        .collect();
    if others.iter().any(|other| !view.is_reserved(other)) {
        return finding
            .severity(Severity::Note)
            .why("Another GPU is left to this system, so that is most likely what somebody wanted")
            .into();
    }
    let finding = finding.fix(view.driver_fix(fix));
    match (is_wanted(stack, view), others.is_empty()) {
        (true, false) => finding,
        (true, true) => finding.severity(Severity::Error).likely(),
        (false, _) => finding.severity(Severity::Note),
    }
    .into()
}

/// `10de:2786`.
fn id(gpu: &Gpu) -> String {
    let (vendor, device) = gpu.id.unwrap_or_default();
    format!("{vendor:04x}:{device:04x}")
}

/// `vfio-pci.ids=` names nothing but functions of this card: without it nothing else is given back.
fn is_of_slot(gpu: &Gpu, parameter: &str, view: &View) -> bool {
    let slot = |address: &str| address.split('.').next().map(str::to_owned);
    let own = gpu.pci.as_deref().and_then(slot);
    let ids: Vec<String> = view
        .facts
        .pci
        .items()
        .filter(|(address, _)| slot(address) == own)
        .filter_map(|(_, function)| {
            let (vendor, device) = (function.vendor.got()?, function.device.got()?);
            Some(format!("{vendor:04x}:{device:04x}"))
        })
        .collect();
    let (_, list) = parameter.split_once('=').unwrap_or_default();
    list.split(',').all(|entry| {
        ids.iter()
            .any(|id| entry.to_ascii_lowercase().starts_with(id.as_str()))
    })
}

/// Somebody wants to compute here. That NVIDIA's driver is installed is no sign of it: it was there before the GPU was given
/// away, or serves when the virtual machine is off.
fn is_wanted(stack: Stack, view: &View) -> bool {
    if stack != Stack::Cuda {
        return matches!(view.wanted(stack), Wanted::Yes(_));
    }
    let software = view.facts.software.got();
    let has_toolkit = software
        .and_then(|software| software.cuda_toolkits.got())
        .is_some_and(|toolkits| !toolkits.is_empty());
    let is_set = |name| view.variable(name).got().is_some();
    view.required.contains(&stack)
        || has_toolkit
        || is_set("CUDA_VISIBLE_DEVICES")
        || is_set("CUDA_DEVICE_ORDER")
}

/// What shows that this system runs virtual machines for others.
fn guests(view: &View) -> Option<(String, String)> {
    let release = view.kernel_release().into_got().unwrap_or_default();
    if release.contains("-pve") {
        return Some((
            "/proc/sys/kernel/osrelease".to_owned(),
            format!("{release}: a kernel of Proxmox"),
        ));
    }
    let under_xen = view
        .facts
        .surroundings
        .got()
        .and_then(|surroundings| surroundings.hypervisor.got())
        .is_some_and(|kind| kind == "xen");
    if under_xen {
        return Some(("/sys/hypervisor/type".to_owned(), "xen".to_owned()));
    }
    let by_package = ["pve-kernel*", "proxmox-*"].iter().find_map(|pattern| {
        let packages = view.packages_matching(pattern).into_got()?;
        let (name, _) = packages.first()?;
        Some((
            view.package_database().to_owned(),
            format!("{name} is installed"),
        ))
    });
    let units = view.facts.services.got().map(|services| &services.units);
    let by_unit = || {
        GUEST_UNITS.iter().find_map(|name| {
            let unit = units?.get(*name)?.got()?;
            Some((unit.file.clone(), format!("{name} starts virtual machines")))
        })
    };
    by_package.or_else(by_unit)
}
