//! What brings a runtime of its own: toolkits of the system, Python environments, the image of a container.

use super::{Stack, View};
use crate::facts::Seen;
use crate::facts::python::PythonEnvironment;
use crate::facts::software::CudaBuild;
use crate::tables::kinds;
use crate::version::Version;

/// One of them.
#[derive(Clone, Debug)]
pub struct Environment<'a> {
    /// Its folder; `image` for that of the container.
    pub key: String,
    /// The stack that it is built for. None: for none, or that could not be read.
    pub stack: Option<Stack>,
    /// What it is.
    pub kind: Kind<'a>,
}

/// What an environment is.
#[derive(Clone, Copy, Debug)]
pub enum Kind<'a> {
    /// A CUDA toolkit, with its version.
    Toolkit(&'a Seen<String>),
    /// A Python environment.
    Python(&'a PythonEnvironment),
    /// The image that this container was made from.
    Image,
    /// The model that the user names.
    Model,
}

/// The CUDA version that an environment brings, and where it says so.
pub struct CudaOf {
    /// The version.
    pub version: Version,
    /// The file, folder or variable.
    pub source: String,
    /// What it says.
    pub says: String,
    /// The cause that `cuda-newer-than-driver` has for its kind.
    pub cause: &'static str,
}

impl Environment<'_> {
    /// The CUDA version that its programs are built with. `Absent`: it brings none.
    pub fn cuda(&self, view: &View) -> Seen<CudaOf> {
        let parsed = |text: &str, source: String, cause| match Version::parse(text) {
            Some(version) if version.major().is_some() => Seen::Got(CudaOf {
                says: format!("CUDA {version}"),
                version,
                source,
                cause,
            }),
            _ => Seen::error(format!("{source}: `{text}` is no version")),
        };
        match self.kind {
            Kind::Toolkit(version) => version
                .as_ref()
                .and_then(|version| parsed(version, self.key.clone(), "toolkit")),
            Kind::Python(python) => match &python.torch {
                Seen::Got(torch) if !torch.cuda.is_absent() => torch
                    .cuda
                    .as_ref()
                    .and_then(|version| parsed(version, torch.path.clone(), "torch")),
                // Of JAX's plugins only the major is written down, and nothing else decides.
                _ => python.jax_plugins.as_ref().and_then(|plugins| {
                    let majors = plugins.iter().filter_map(|plugin| {
                        let rest = plugin.strip_prefix("jax_cuda")?;
                        let (major, _) = rest.split_once('_')?;
                        Some((major, plugin))
                    });
                    match majors.max_by_key(|(major, _)| major.parse::<u64>().ok()) {
                        Some((major, plugin)) => {
                            parsed(major, self.key.clone(), "jax").map(|cuda| CudaOf {
                                says: format!("has {plugin}"),
                                ..cuda
                            })
                        }
                        None => Seen::Absent,
                    }
                }),
            },
            Kind::Image => view
                .variable("CUDA_VERSION")
                .and_then(|version| parsed(version, "CUDA_VERSION".to_owned(), "image")),
            Kind::Model => Seen::Absent,
        }
    }
}

/// What there is to ask about building with CUDA.
pub enum ToolkitGround<'v> {
    /// The folder of the toolkit that builds take, and what its headers say.
    Open(&'v str, &'v CudaBuild),
    /// There is no toolkit that could build.
    NotHere,
    /// Why that is not known, and what would tell where it is not the headers.
    Unknown(&'static str, Option<&'static str>),
}

/// The CUDA version that the driver offers.
pub struct DriverCuda {
    /// Its major version.
    pub major: u64,
    /// Its minor version. None: only the branch of the driver is known, which decides the major one.
    pub minor: Option<u64>,
    /// The call or file that says so.
    pub source: String,
    /// What it says.
    pub says: String,
}

impl View<'_> {
    /// The newest CUDA that the driver offers: what its library answers, else what follows from the version of the kernel
    /// module. Unknown also where there is no driver: nothing is offered then, but that is another fault.
    pub fn driver_cuda(&self) -> Seen<DriverCuda> {
        let told = self.facts.cuda.as_ref().and_then(|cuda| {
            let number = cuda.driver_version.0.as_ref();
            number.map(|number| u64::from(*number))
        });
        if let Seen::Got(number) = told
            && number >= 1000
        {
            let (major, minor) = (number / 1000, number % 1000 / 10);
            return Seen::Got(DriverCuda {
                major,
                minor: Some(minor),
                source: "cuDriverGetVersion()".to_owned(),
                says: format!("{number}: CUDA {major}.{minor}"),
            });
        }
        // A compatibility library offers more than the module alone would.
        let winner = self.winner("libcuda.so.1");
        if winner.got().is_some_and(|library| library.is_compat()) {
            return Seen::default();
        }
        let Seen::Got((version, source)) = self.nvidia_loaded_version() else {
            return Seen::default();
        };
        let Some(driver) = Version::parse(version) else {
            return Seen::default();
        };
        let majors = self.tables.rows(&kinds::MAJOR);
        let offered = majors.iter().rev().find(|row| {
            row.version("floor")
                .is_some_and(|floor| floor.may_accuse() && driver >= floor.value)
        });
        match offered.and_then(|row| row.version("major")?.value.major()) {
            // A driver that is newer than every row may offer more than the newest row.
            Some(major)
                if Some(major)
                    < majors
                        .last()
                        .and_then(|row| row.version("major")?.value.major()) =>
            {
                Seen::Got(DriverCuda {
                    major,
                    minor: None,
                    source: source.to_owned(),
                    says: format!("version {version}: CUDA {major}"),
                })
            }
            _ => Seen::default(),
        }
    }

    /// The folder of the toolkit that builds take: what `CUDA_HOME` or `CUDA_PATH` names, else that of the first `nvcc` on
    /// `PATH`, else what `/usr/local/cuda` leads to, else the only one with a compiler; with what leads there. `Absent`: there
    /// is no toolkit that could build.
    pub fn chosen_toolkit(&self) -> Seen<(&str, &'static str)> {
        let Some(software) = self.facts.software.got() else {
            return Seen::default();
        };
        if let Seen::Got(folder) = &software.cuda_home {
            return Seen::Got((folder, "CUDA_HOME"));
        }
        if let Seen::Got(folder) = &software.nvcc {
            return Seen::Got((folder, "PATH"));
        }
        let Seen::Got(toolkits) = &software.cuda_toolkits else {
            return software.cuda_toolkits.as_ref().and_then(|_| Seen::Absent);
        };
        let compiler = |folder: &String| match software.cuda_builds.get(folder) {
            Some(build) => build.compiler.as_ref().map(|_| ()),
            None => Seen::default(),
        };
        if let Seen::Got(link) = &software.cuda_link
            && toolkits.contains_key(link)
            && compiler(link).got().is_some()
        {
            return Seen::Got((link, "/usr/local/cuda"));
        }
        let mut able = toolkits
            .keys()
            .filter(|folder| !compiler(folder).is_absent());
        match (able.next(), able.next()) {
            (Some(only), None) if compiler(only).got().is_some() => {
                Seen::Got((only.as_str(), "/usr/local"))
            }
            (None, _) => Seen::Absent,
            _ => Seen::default(),
        }
    }

    /// The same with what its headers say.
    pub fn toolkit_ground(&self) -> ToolkitGround<'_> {
        let Some(software) = self.facts.software.got() else {
            return ToolkitGround::Unknown("libraries and toolkits were not looked at", None);
        };
        match self.chosen_toolkit() {
            Seen::Got((folder, _)) => match software.cuda_builds.get(folder) {
                Some(build) => ToolkitGround::Open(folder, build),
                None => ToolkitGround::Unknown("the headers of the toolkit were not read", None),
            },
            Seen::Absent => ToolkitGround::NotHere,
            _ => ToolkitGround::Unknown(
                "which CUDA toolkit a build would take is not known",
                Some("`command -v nvcc`"),
            ),
        }
    }

    /// Somebody builds extensions here: only they set this.
    pub fn builds_extensions(&self) -> bool {
        self.variable("TORCH_CUDA_ARCH_LIST").got().is_some()
    }

    /// The table's row of a toolkit, by the first two numbers of its version.
    pub fn toolkit_row(&self, version: &str) -> Option<crate::tables::Row> {
        let version = Version::parse(version)?;
        let mut numbers = version.numbers();
        let name = format!("{}.{}", numbers.next()?, numbers.next()?);
        self.tables.row(&kinds::TOOLKIT, &name)
    }

    /// What the first Python environment has that is built for this stack, in words, and its folder.
    pub fn first_framework(&self, stack: Stack) -> Option<(String, &str)> {
        let mut environments = self.environments.iter();
        environments.find_map(|environment| match environment.kind {
            Kind::Python(python)
                if environment.stack == Some(stack) && self.is_first_python(&environment.key) =>
            {
                let key = environment.key.as_str();
                let torch = python.torch.got().is_some_and(|torch| match stack {
                    Stack::Rocm => torch.hip.got().is_some(),
                    _ => torch.cuda.got().is_some(),
                });
                let framework = if torch { "PyTorch" } else { "JAX" };
                let words = format!("{framework} in {key} is built for it");
                Some((words, key))
            }
            _ => None,
        })
    }

    /// This environment is the one whose programs the user's shell starts.
    pub fn is_first_python(&self, key: &str) -> bool {
        let python = self.facts.python.got();
        let first = python.and_then(|python| python.first.got());
        // What the user installed for himself belongs to the system's interpreter.
        first.is_some_and(|first| first == key || (first == "/usr" && key.ends_with("/.local")))
    }
}

impl<'a> View<'a> {
    pub(super) fn find_environments(&self) -> Vec<Environment<'a>> {
        let mut found = Vec::new();
        let software = self.facts.software.got();
        let toolkits = software.and_then(|software| software.cuda_toolkits.got());
        for (folder, version) in toolkits.into_iter().flatten() {
            found.push(Environment {
                key: folder.clone(),
                stack: Some(Stack::Cuda),
                kind: Kind::Toolkit(version),
            });
        }
        let python = self.facts.python.got();
        let environments = python.map(|python| &python.environments);
        for (folder, python) in environments.into_iter().flatten() {
            let built_for = |stack: Stack| match (&python.torch, stack) {
                (torch, Stack::Cuda) => {
                    python.jax_plugins.got().is_some()
                        || torch.got().is_some_and(|torch| torch.cuda.got().is_some())
                }
                (Seen::Got(torch), Stack::Rocm) => torch.hip.got().is_some(),
                _ => false,
            };
            let is_empty = python.torch.is_absent() && python.jax_plugins.is_absent();
            let is_unseen = matches!(python.interpreter, Seen::Unasked(_))
                && matches!(python.torch, Seen::Unasked(_));
            if is_empty || is_unseen {
                continue;
            }
            found.push(Environment {
                key: folder.clone(),
                stack: Stack::ALL.into_iter().find(|stack| built_for(*stack)),
                kind: Kind::Python(python),
            });
        }
        if self.in_container() && !self.variable("CUDA_VERSION").is_absent() {
            found.push(Environment {
                key: "image".to_owned(),
                stack: Some(Stack::Cuda),
                kind: Kind::Image,
            });
        }
        found
    }
}
