//! What kind of place this system runs in.

use super::{Place, View};
use crate::facts::{Facts, Seen, Why};

/// A container first: one under WSL is a container.
pub fn place(facts: &Facts) -> Seen<Place> {
    if let Some((engine, _)) = container_engine(facts) {
        return Seen::Got(Place::Container(engine));
    }
    match facts.surroundings.got() {
        Some(marks) if marks.dockerenv.is_absent() && marks.containerenv.is_absent() => {
            Seen::Got(wsl_version(facts).map_or(Place::Host, Place::Wsl))
        }
        Some(_) => Seen::Unasked(Why::NotCaptured),
        None => facts.surroundings.as_ref().map(|_| Place::Host),
    }
}

/// The container engine, from whatever mark it left, and the mark.
fn container_engine(facts: &Facts) -> Option<(String, &'static str)> {
    let marks = facts.surroundings.got()?;
    let variable = |name: &str| {
        facts
            .environment
            .got()
            .and_then(|environment| environment.variables.get(name))
    };
    if marks.kubernetes.got().is_some() {
        return Some(("kubernetes".to_owned(), "/var/run/secrets/kubernetes.io"));
    }
    if variable("KUBERNETES_SERVICE_HOST").is_some() {
        return Some(("kubernetes".to_owned(), "KUBERNETES_SERVICE_HOST"));
    }
    let by_systemd = marks.systemd_container.got();
    let named = by_systemd
        .map(|engine| (engine, "/run/systemd/container"))
        .or(variable("container").map(|engine| (engine, "container")));
    if let Some((engine, mark)) = named {
        // `/run/systemd/container` reads `wsl` inside WSL with systemd: that is a place of its own.
        if engine != "wsl" && !engine.is_empty() {
            return Some((engine.clone(), mark));
        }
    }
    if marks.containerenv.got().is_some() {
        return Some(("podman".to_owned(), "/run/.containerenv"));
    }
    if marks.dockerenv.got().is_some() {
        return Some(("docker".to_owned(), "/.dockerenv"));
    }
    if marks.singularity.got().is_some() {
        return Some(("apptainer".to_owned(), "/.singularity.d"));
    }
    let lines = marks.cgroup.got().map_or(&[][..], Vec::as_slice);
    [
        ("kubepods", "kubernetes"),
        ("docker", "docker"),
        ("libpod", "podman"),
        ("containerd", "containerd"),
        ("lxc", "lxc"),
    ]
    .iter()
    .find(|(mark, _)| lines.iter().any(|line| line.contains(mark)))
    .map(|(_, engine)| ((*engine).to_owned(), "/proc/1/cgroup"))
    .or_else(|| {
        has_lent_mounts(facts).then(|| ("nodes passed in".to_owned(), "/proc/self/mountinfo"))
    })
}

/// A GPU's nodes or its driver's libraries are mounts of their own: somebody passed them into this place one by one, as LXC,
/// rootless engines, Enroot and sandboxes do. On a machine of its own they just stand in `/dev` and in the folders of libraries.
fn has_lent_mounts(facts: &Facts) -> bool {
    facts.mounts.got().is_some_and(|mounts| {
        mounts.mounts.iter().any(|mount| {
            mount.point == "/dev/kfd"
                || mount.point == "/dev/dri"
                || mount.point.starts_with("/dev/dri/")
                || mount.point.starts_with("/dev/nvidia")
                || is_driver_library(&mount.point)
        })
    })
}

/// A library of NVIDIA's driver.
fn is_driver_library(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.starts_with("libcuda.so") || name.starts_with("libnvidia-ml.so")
}

/// The version of WSL that this kernel belongs to. A virtual machine on Hyper-V or Azure is not WSL: its kernel does not
/// call itself Microsoft's.
pub fn wsl_version(facts: &Facts) -> Option<u8> {
    let kernel = facts.kernel.got()?;
    // The release alone: the rest of `/proc/version` names who built the kernel, which may be Microsoft for Azure, too.
    let release = match (&kernel.release, &kernel.version) {
        (Seen::Got(release), _) => release.as_str(),
        (_, Seen::Got(version)) => version.split_whitespace().nth(2)?,
        _ => return None,
    };
    if !release.to_ascii_lowercase().contains("microsoft") {
        return None;
    }
    // WSL 1 is no Linux kernel: it writes `4.4.0-19041-Microsoft`. WSL 2 writes `-microsoft-standard-WSL2`, and kernels that
    // people build for it keep the small letter.
    let second = release.contains("WSL2") || !release.contains("Microsoft");
    Some(if second { 2 } else { 1 })
}

impl View<'_> {
    /// Known to be inside a container.
    pub fn in_container(&self) -> bool {
        matches!(self.place, Seen::Got(Place::Container(_)))
    }

    /// A container that is a system of its own, into which its user installs the libraries of drivers: no engine lends them.
    pub fn container_is_system(&self) -> bool {
        matches!(&self.place, Seen::Got(Place::Container(engine)) if ["lxc", "systemd-nspawn", "nodes passed in"].contains(&engine.as_str()))
    }

    /// What shows that this is a container.
    pub fn container_mark(&self) -> Option<&'static str> {
        container_engine(self.facts).map(|(_, mark)| mark)
    }

    /// The variable that shows a job of a scheduler, which lets it reach some of the GPUs and sets variables on purpose.
    pub fn scheduler_job(&self) -> Option<&'static str> {
        [
            "SLURM_JOB_ID",
            "PBS_JOBID",
            "LSB_JOBID",
            "_CONDOR_SLOT",
            "SGE_TASK_ID",
            "FLUX_JOB_ID",
            "OAR_JOB_ID",
            "COBALT_JOBID",
            "KUBERNETES_SERVICE_HOST",
        ]
        .into_iter()
        .find(|name| self.variable(name).got().is_some())
    }

    /// The version of WSL around this system, also around a container in it.
    pub fn wsl(&self) -> Option<u8> {
        wsl_version(self.facts)
    }

    /// /etc/wsl.conf keeps the GPUs of Windows out.
    pub fn wsl_gpu_is_off(&self) -> bool {
        let config = self.facts.wsl.got().and_then(|wsl| wsl.config.got());
        let value = config.and_then(|values| values.get("gpu.enabled"));
        value.is_some_and(|value| {
            ["false", "0", "no", "off"].contains(&value.to_ascii_lowercase().as_str())
        })
    }

    /// The hypervisor under this system, where there is a sign of one.
    pub fn hypervisor(&self) -> Option<String> {
        let facts = self.facts;
        let from_xen = facts
            .surroundings
            .got()
            .and_then(|marks| marks.hypervisor.got().cloned());
        let dmi = facts.dmi.got();
        let text = |field: Option<&Seen<String>>| field.and_then(|seen| seen.got().cloned());
        let vendor = text(dmi.map(|dmi| &dmi.vendor)).unwrap_or_default();
        let product = text(dmi.map(|dmi| &dmi.product)).unwrap_or_default();
        let by_name = [
            ("QEMU", "QEMU/KVM"),
            ("KVM", "KVM"),
            ("VMware", "VMware"),
            ("VirtualBox", "VirtualBox"),
            ("Xen", "Xen"),
            ("Amazon EC2", "Amazon EC2"),
            ("Google Compute Engine", "Google Compute Engine"),
            ("OpenStack", "OpenStack"),
            ("Firecracker", "Firecracker"),
        ]
        .iter()
        .find(|(mark, _)| vendor.contains(mark) || product.contains(mark))
        // `c5.metal`, `m7i.metal-24xl`: the whole machine is rented.
        .filter(|_| !product.contains(".metal"))
        .map(|(_, name)| (*name).to_owned());
        let hyper_v = (vendor == "Microsoft Corporation" && product == "Virtual Machine")
            .then(|| "Hyper-V".to_owned());
        let flag = facts
            .proc_hardware
            .got()
            .and_then(|hardware| hardware.hypervisor_flag.got().copied())
            .unwrap_or(false)
            .then(|| "a hypervisor".to_owned());
        from_xen.or(by_name).or(hyper_v).or(flag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::kernel::Kernel;

    fn version(release: Seen<String>, version: Seen<String>) -> Option<u8> {
        wsl_version(&Facts {
            kernel: Seen::Got(Kernel {
                release,
                version,
                ..Kernel::default()
            }),
            ..Facts::default()
        })
    }

    #[test]
    fn the_release_tells_wsl() {
        for (release, expected) in [
            ("6.6.87.2-microsoft-standard-WSL2", Some(2)),
            ("6.12.40-microsoft-mine", Some(2)),
            ("4.4.0-22621-Microsoft", Some(1)),
            ("6.8.0-1021-azure", None),
            ("6.14.0-33-generic", None),
        ] {
            assert_eq!(
                version(Seen::Got(release.to_owned()), Seen::default()),
                expected
            );
            let line = format!("Linux version {release} (build@azure.microsoft.com) #1 Microsoft");
            assert_eq!(version(Seen::default(), Seen::Got(line)), expected);
        }
        assert_eq!(version(Seen::default(), Seen::default()), None);
    }
}
