//! What the next boot will find: a kernel that is newer than the running one and has no module of NVIDIA's.

use super::{DriverGround, Gpu, Loaded, Stack, View};
use crate::facts::Seen;
use crate::facts::module_files::InstalledKernel;
use crate::version::Version;

/// What may bring the module into that kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Brings {
    /// akmods builds it while that kernel starts.
    Akmods,
    /// DKMS may build it while that kernel starts.
    Dkms,
    /// A package that has it ready-made for each kernel.
    Package,
    /// Nothing on this system was found that builds one.
    Nothing,
}

/// NVIDIA's driver runs, and the kernel that is likely to boot next has no module of it.
#[derive(Clone, Debug)]
pub struct KernelWithoutNvidia<'v> {
    /// Its release.
    pub release: &'v str,
    /// What may bring the module.
    pub brings: Brings,
    /// The headers to build with are known not to be there.
    pub lacks_headers: bool,
    /// The GPUs that the driver holds now.
    pub gpus: Vec<&'v Gpu>,
}

impl KernelWithoutNvidia<'_> {
    /// What will happen, in one line; None: the module is built while that kernel starts.
    pub fn says(&self) -> Option<String> {
        (self.brings != Brings::Akmods).then(|| {
            format!(
                "The next boot will likely break: kernel {}, the newest one here, has no NVIDIA module built",
                self.release
            )
        })
    }
}

impl View<'_> {
    /// The newest installed kernel of the running one's flavour, where that is newer than the running one. Which one really
    /// boots, the boot loader decides.
    fn newer_kernel(&self, running: &str) -> Option<(&str, &InstalledKernel)> {
        let files = self.facts.module_files.got()?;
        let kernels = files.kernels.items.iter();
        let (release, kernel) = kernels
            .filter(|(release, kernel)| {
                kernel.modules_dep.got().is_some() && flavour(release) == flavour(running)
            })
            .max_by_key(|(release, _)| Version::parse(release))?;
        (Version::parse(release) > Version::parse(running)).then_some((release, kernel))
    }

    /// NVIDIA's driver runs, and the newest kernel is known to have no module of it.
    pub fn next_kernel_without_nvidia(&self) -> Option<KernelWithoutNvidia<'_>> {
        let is_here = self.driver_ground() == DriverGround::Own
            && self.wsl().is_none()
            && !self.is_tegra()
            && self.driver_container().is_none();
        let running = self.kernel_release().into_got()?;
        let (release, kernel) = self.newer_kernel(running)?;
        let gpus: Vec<&Gpu> = self
            .gpus_of(Stack::Cuda)
            .filter(|gpu| gpu.is_held_by("nvidia"))
            .collect();
        let runs = matches!(self.loaded("nvidia"), Loaded::Yes(_))
            && self.module_files("nvidia").got().is_some();
        let is_one = |names: &[&str]| names.iter().any(|name| self.is_of_family(name));
        // Images bring driver and kernel together.
        if !is_here
            || gpus.is_empty()
            || !runs
            || !kernel.modules.get("nvidia").is_absent()
            || is_one(&["nixos", "ostree"])
        {
            return None;
        }
        let brings = match (self.builder_of("nvidia"), self.ready_nvidia_module()) {
            (Seen::Got(builder), _) if builder.source.contains("akmods") => Brings::Akmods,
            (Seen::Got(_), _) => Brings::Dkms,
            // Ready-made modules of enterprise distributions serve several kernels, and their packages link them in.
            (Seen::Absent, Seen::Got(_)) if !is_one(&["rhel", "suse"]) => Brings::Package,
            (Seen::Absent, Seen::Absent) => Brings::Nothing,
            _ => return None,
        };
        Some(KernelWithoutNvidia {
            release,
            brings,
            lacks_headers: kernel.headers.got() == Some(&false),
            gpus,
        })
    }
}

/// The flavour of a kernel behind its numbers: `generic`, `lts`; empty where it has none.
fn flavour(release: &str) -> &str {
    let last = release.rsplit('-').next().unwrap_or_default();
    let is_word = last.starts_with(|c: char| c.is_ascii_alphabetic()) && last != release;
    if is_word { last } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flavours_of_kernels() {
        for (release, wanted) in [
            ("6.8.0-45-generic", "generic"),
            ("6.1.0-18-amd64", "amd64"),
            ("6.6.44-1-lts", "lts"),
            ("6.10.3-arch1-2", ""),
            ("6.11.4-301.fc41.x86_64", ""),
            ("5.14.0-503.el9.x86_64", ""),
            ("6.4.0-150600.23.25-default", "default"),
        ] {
            assert_eq!(flavour(release), wanted, "{release}");
        }
    }
}
