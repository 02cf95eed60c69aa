//! What is installed: which file of a library programs load and which version it is of, and packages.

use super::View;
use crate::facts::packages::{Package, is_of_interest};
use crate::facts::software::Library;
use crate::facts::{Seen, Why};

/// Folders of libraries for 32-bit programs.
const NARROW_FOLDERS: &[&str] = &["/i386-linux-gnu/", "/arm-linux-gnueabihf/", "/lib32/"];
/// Variables that bring the loader to libraries.
const VARIABLES: [&str; 2] = ["LD_PRELOAD", "LD_LIBRARY_PATH"];
/// Where drivers put their libraries.
const SYSTEM: [&str; 6] = [
    "/usr/lib/",
    "/usr/lib64/",
    "/lib/",
    "/lib64/",
    "/usr/local/nvidia/",
    "/run/",
];
/// Lowest major version of a driver of NVIDIA that has CUDA. Lower numbers behind the name are those of the interface:
/// `libcuda.so.1.1` under WSL and on Jetson boards.
const FIRST_DRIVER: u32 = 100;

impl Library {
    /// Only 32-bit programs can load it.
    pub fn is_32_bit(&self) -> bool {
        match self.elf.got() {
            Some(elf) => elf.class == 32,
            None => NARROW_FOLDERS.iter().any(|part| self.path.contains(part)),
        }
    }

    /// A toolkit's stand-in that programs are linked with and that cannot work.
    pub fn is_stub(&self) -> bool {
        self.path.contains("/stubs/")
    }

    /// Of a forward-compatibility package (`/usr/local/cuda-12.4/compat`, conda's `cuda-compat`): it comes without a driver.
    pub fn is_compat(&self) -> bool {
        self.path.contains("compat/")
    }

    /// The variable that brings the loader to a copy which is not where drivers put theirs: it belongs to somebody's
    /// environment.
    pub fn of_environment(&self) -> Option<&str> {
        let is_own = SYSTEM.iter().any(|folder| self.path.starts_with(folder));
        let via = self.via.as_deref()?;
        (VARIABLES.contains(&via) && !is_own).then_some(via)
    }

    /// The empty file that a container engine leaves behind.
    pub fn is_empty(&self) -> bool {
        self.bytes.got() == Some(&0)
    }
}

impl Package {
    /// The version as its maker numbers it: without epoch and revision.
    pub fn upstream(&self) -> &str {
        let version = self.version.as_str();
        let version = version.split_once(':').map_or(version, |(_, rest)| rest);
        version.split('-').next().unwrap_or(version)
    }
}

impl View<'_> {
    /// Where the database of packages is.
    pub fn package_database(&self) -> &'static str {
        let packages = self.facts.packages.got();
        match packages.and_then(|packages| packages.manager.as_deref()) {
            Some("rpm") => "/var/lib/rpm",
            Some("pacman") => "/var/lib/pacman/local",
            _ => "/var/lib/dpkg/status",
        }
    }

    /// The file that a 64-bit program loads by this name. `Absent`: proved that there is none.
    pub fn winner(&self, name: &str) -> Seen<&Library> {
        self.library(name)
            .and_then(|files| self.loadable(files).next().map_or(Seen::Absent, Seen::Got))
    }

    /// The files that a 64-bit program of this machine can load, in the loader's order. What lies in a toolkit's `stubs` or
    /// `compat` folder is loaded only where something brings the loader there.
    pub fn loadable<'files>(
        &self,
        files: &'files [Library],
    ) -> impl Iterator<Item = &'files Library> {
        let kernel = self.facts.kernel.got();
        let machine = kernel.and_then(|kernel| kernel.machine.got());
        files.iter().filter(move |file| {
            let elf = file.elf.got();
            // A recording may not say for which processor it is.
            let elf_machine = elf.map(|elf| &elf.machine).filter(|name| !name.is_empty());
            let is_foreign = elf_machine
                .zip(machine)
                .is_some_and(|(of, here)| of != here);
            let is_aside = file.is_stub() || file.is_compat();
            !(file.is_32_bit() || file.is_empty() || is_foreign)
                && (file.via.is_some() || !is_aside)
        })
    }

    /// Folders in which a distribution would have a library and that were looked into: where anybody can look again.
    pub fn usual_library_folders(&self) -> Vec<&str> {
        const USUAL: [&str; 5] = [
            "/usr/lib/x86_64-linux-gnu",
            "/usr/lib/aarch64-linux-gnu",
            "/usr/lib64",
            "/usr/lib",
            "/run/opengl-driver/lib",
        ];
        let software = self.facts.software.got();
        let there: Vec<&str> = software
            .into_iter()
            .flat_map(|software| &software.library_folders)
            .filter(|(_, seen)| seen.got().is_some())
            .map(|(path, _)| path.as_str())
            .filter(|path| USUAL.contains(path))
            .take(3)
            .collect();
        match there.is_empty() {
            true => vec!["/etc/ld.so.cache"],
            false => there,
        }
    }

    /// What might come before the libraries that were seen: a variable, or a folder or file of it, that could not be read.
    pub fn unknown_before_libraries(&self) -> Option<String> {
        let asked = &self.facts.software.got()?.library_folders;
        VARIABLES.iter().find_map(|variable| {
            let places = match self.variable(variable) {
                Seen::Got(places) => places,
                Seen::Absent => return None,
                other => return Some(format!("{variable}: {}", other.map(|_| ()).why())),
            };
            places
                .split([':', ' '])
                .filter_map(|place| Some((place, asked.get(place.trim_end_matches('/'))?)))
                .find(|(_, answer)| answer.is_unknown())
                .map(|(place, answer)| format!("{variable} leads to {place}: {}", answer.why()))
        })
    }

    /// The version that a library's file bears in its name behind `.so.`, where its links end: `580.126.09`,
    /// `6.3.60301`. None: it bears none, or only the number of the interface.
    pub fn library_version<'library>(&self, library: &'library Library) -> Option<&'library str> {
        let target = library.target.got()?;
        let (name, version) = target.rsplit('/').next()?.split_once(".so.")?;
        let (major, _) = version.split_once('.')?;
        let major: u32 = major.parse().ok()?;
        let of_nvidia = name == "libcuda" || name.starts_with("libnvidia-");
        (!of_nvidia || major >= FIRST_DRIVER).then_some(version)
    }

    /// An installed package; one that left nothing but its settings is not. `Absent`: the database was read and does not
    /// have it.
    pub fn package(&self, name: &str) -> Seen<&Package> {
        self.packages_matching(name).map(|packages| packages[0].1)
    }

    /// Installed packages of a name or, with a star at its end, of names that begin so; never none. `Absent`: the database
    /// was read and has none. Unknown for names that nobody looks at.
    pub fn packages_matching(&self, pattern: &str) -> Seen<Vec<(&str, &Package)>> {
        if !is_of_interest(pattern) {
            return Seen::Unasked(Why::NotCaptured);
        }
        let (start, is_open) = match pattern.strip_suffix('*') {
            Some(start) => (start, true),
            None => (pattern, false),
        };
        let installed = self.facts.packages.as_ref();
        installed
            .and_then(|packages| packages.installed.as_ref())
            .and_then(|installed| {
                let found: Vec<(&str, &Package)> = installed
                    .items
                    .iter()
                    .filter(|(name, _)| *name == start || is_open && name.starts_with(start))
                    .flat_map(|(name, packages)| {
                        packages.iter().map(move |one| (name.as_str(), one))
                    })
                    .filter(|(_, package)| is_installed(package))
                    .collect();
                match found.is_empty() {
                    false => Seen::Got(found),
                    true if installed.whole => Seen::Absent,
                    true => Seen::Unasked(Why::NotCaptured),
                }
            })
    }
}

/// Files of it are there, though it may not work yet.
fn is_installed(package: &Package) -> bool {
    !["config-files", "not-installed"].contains(&package.state.as_str())
}
