//! Fills `facts/environment.rs`: who asks, and what steers the programs that they start.

use crate::facts::Seen;
use crate::facts::environment::{Environment, GroupRow, JudgedUser, PasswdRow, ProcessUser, Users};
use crate::host::Host;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

/// Variables that are read, each with the reason. No other variable ever is.
pub const STEERING: &[(&str, &str)] = &[
    ("CC", "which compiler builds of extensions use"),
    ("COBALT_JOBID", "a job of Cobalt"),
    ("CONDA_PREFIX", "which Python environment is active"),
    ("CUDAHOSTCXX", "which compiler builds with CUDA use"),
    ("CUDA_DEVICE_MAX_CONNECTIONS", "work queues per GPU"),
    ("CUDA_DEVICE_ORDER", "how CUDA numbers the GPUs"),
    ("CUDA_HOME", "which CUDA toolkit builds use"),
    ("CUDA_LAUNCH_BLOCKING", "makes every kernel launch wait"),
    ("CUDA_MODULE_LOADING", "when CUDA loads device code"),
    ("CUDA_MPS_PIPE_DIRECTORY", "sends CUDA to an MPS server"),
    ("CUDA_PATH", "which CUDA toolkit builds use"),
    ("CUDA_VERSION", "toolkit version that an image declares"),
    ("CUDA_VISIBLE_DEVICES", "hides GPUs from CUDA"),
    ("FLUX_JOB_ID", "a job of Flux"),
    (
        "GGML_VK_VISIBLE_DEVICES",
        "hides GPUs from llama.cpp on Vulkan",
    ),
    ("GPU_DEVICE_ORDINAL", "hides GPUs from OpenCL on AMD"),
    ("HIP_PATH", "which HIP builds use"),
    ("HIP_VISIBLE_DEVICES", "hides GPUs from HIP"),
    (
        "HSA_ENABLE_DXG_DETECTION",
        "lets ROCm find the GPU under WSL",
    ),
    ("HSA_ENABLE_SDMA", "switches the copy engines of ROCm off"),
    (
        "HSA_FORCE_FINE_GRAIN_PCIE",
        "lets ROCm use fine-grained memory over PCIe",
    ),
    (
        "HSA_OVERRIDE_GFX_VERSION",
        "makes ROCm take the GPU for another",
    ),
    ("HSA_OVERRIDE_GFX_VERSION_0", "the same for one GPU"),
    ("HSA_OVERRIDE_GFX_VERSION_1", "the same for one GPU"),
    ("HSA_OVERRIDE_GFX_VERSION_2", "the same for one GPU"),
    ("HSA_OVERRIDE_GFX_VERSION_3", "the same for one GPU"),
    ("HSA_OVERRIDE_GFX_VERSION_4", "the same for one GPU"),
    ("HSA_OVERRIDE_GFX_VERSION_5", "the same for one GPU"),
    ("HSA_OVERRIDE_GFX_VERSION_6", "the same for one GPU"),
    ("HSA_OVERRIDE_GFX_VERSION_7", "the same for one GPU"),
    ("HSA_XNACK", "page migration of ROCm"),
    ("KUBERNETES_SERVICE_HOST", "a Kubernetes pod"),
    ("LD_LIBRARY_PATH", "which libraries the loader takes first"),
    ("LD_PRELOAD", "which libraries the loader puts in front"),
    ("LSB_JOBID", "a job of LSF"),
    ("NCCL_DEBUG", "what NCCL tells"),
    ("NCCL_IB_DISABLE", "keeps NCCL off InfiniBand"),
    ("NCCL_IB_HCA", "which adapters NCCL uses for RDMA"),
    ("NCCL_NET_GDR_LEVEL", "when NCCL uses GPUDirect RDMA"),
    (
        "NCCL_P2P_DISABLE",
        "keeps NCCL from direct access between GPUs",
    ),
    (
        "NCCL_P2P_LEVEL",
        "when NCCL uses direct access between GPUs",
    ),
    ("NCCL_SHM_DISABLE", "keeps NCCL off shared memory"),
    ("NCCL_SOCKET_IFNAME", "which network NCCL uses"),
    ("NVCC_APPEND_FLAGS", "options that nvcc always gets"),
    ("NVCC_CCBIN", "which compiler nvcc uses for the host"),
    ("NVCC_PREPEND_FLAGS", "options that nvcc always gets"),
    (
        "NVIDIA_DISABLE_REQUIRE",
        "switches the image's demands on the driver off",
    ),
    (
        "NVIDIA_DRIVER_CAPABILITIES",
        "which driver parts a container gets",
    ),
    ("NVIDIA_VISIBLE_DEVICES", "which GPUs a container gets"),
    ("OAR_JOB_ID", "a job of OAR"),
    ("OCL_ICD_VENDORS", "where OpenCL looks for drivers"),
    ("OLLAMA_HOST", "which Ollama is asked"),
    ("OLLAMA_IGPU_ENABLE", "lets Ollama use integrated GPUs"),
    ("OLLAMA_LLM_LIBRARY", "which backend Ollama takes"),
    ("OLLAMA_VULKAN", "lets Ollama use Vulkan"),
    ("ONEAPI_DEVICE_SELECTOR", "hides GPUs from SYCL"),
    ("PATH", "which tools and toolkits are found first"),
    ("PBS_JOBID", "a job of PBS"),
    ("PYTORCH_ALLOC_CONF", "how PyTorch takes GPU memory"),
    ("PYTORCH_CUDA_ALLOC_CONF", "how PyTorch takes GPU memory"),
    ("PYTORCH_HIP_ALLOC_CONF", "how PyTorch takes GPU memory"),
    ("PYTORCH_ROCM_ARCH", "which GPUs PyTorch is built for"),
    ("ROCM_HOME", "which ROCm builds use"),
    ("ROCM_PATH", "which ROCm builds use"),
    ("ROCR_VISIBLE_DEVICES", "hides GPUs from ROCm"),
    ("SGE_TASK_ID", "a job of Grid Engine"),
    ("SLURM_JOB_ID", "a job of Slurm"),
    ("SLURM_STEP_GPUS", "GPUs that Slurm gave to this step"),
    ("SLURM_STEP_ID", "a step of Slurm"),
    ("SSH_CONNECTION", "a session without a seat"),
    ("SYCL_DEVICE_FILTER", "hides GPUs from older SYCL"),
    (
        "TORCH_CUDA_ARCH_LIST",
        "which GPUs extensions are built for",
    ),
    ("VIRTUAL_ENV", "which Python environment is active"),
    ("VK_DRIVER_FILES", "which Vulkan drivers are loaded"),
    ("VK_ICD_FILENAMES", "which Vulkan drivers are loaded"),
    ("WSL_DISTRO_NAME", "a system under WSL"),
    ("XDG_SESSION_ID", "a login session"),
    ("XDG_SESSION_TYPE", "whether the session has a screen"),
    ("ZE_AFFINITY_MASK", "hides GPUs from Level Zero"),
    ("ZE_FLAT_DEVICE_HIERARCHY", "how Level Zero shows tiles"),
    ("_CONDOR_SLOT", "a job of HTCondor"),
    ("container", "the container manager's name for itself"),
];
/// Variables of which it matters only that they are set: their values tell of people and networks.
pub const ONLY_SET: &[&str] = &["KUBERNETES_SERVICE_HOST", "OLLAMA_HOST", "SSH_CONNECTION"];
/// Groups that usually own GPU nodes.
const USUAL_GROUPS: &[&str] = &["render", "video"];
/// GPU nodes whose groups matter, besides those in `/dev/dri` and `/dev/accel`.
const NODES: &[&str] = &[
    "/dev/kfd",
    "/dev/nvidia-uvm",
    "/dev/nvidia0",
    "/dev/nvidiactl",
];
/// Most nodes of one folder, and most rows of one file.
const LIMIT: usize = 256;

/// Source `environment`.
pub fn environment(host: &Host) -> Seen<Environment> {
    let mut environment = Environment {
        variables: BTreeMap::new(),
        whole: true,
    };
    for (name, _) in STEERING {
        match host.env(name) {
            Seen::Got(value) => {
                let value = if ONLY_SET.contains(name) {
                    "set".to_owned()
                } else {
                    value
                };
                environment.variables.insert((*name).to_owned(), value);
            }
            Seen::Absent => {}
            Seen::Unasked(_) | Seen::Failed(_) => environment.whole = false,
        }
    }
    if environment.variables.is_empty() && !environment.whole {
        return Seen::default();
    }
    Seen::Got(environment)
}

/// Source `users`.
pub fn users(host: &Host) -> Seen<Users> {
    let mut process = host.user();
    let Accounts {
        passwd,
        groups,
        named_uid,
    } = accounts(host, process.got(), &BTreeSet::new());
    let named = host.options().user.as_deref();
    if let Seen::Got(user) = &mut process {
        let row = passwd.got().and_then(|rows| rows.get(&user.uid));
        user.name = user.name.take().or_else(|| row.map(|row| row.name.clone()));
    }
    let judged = judged(named, named_uid, process.got(), passwd.got());
    Seen::Got(Users {
        groups,
        unknown_user: named.filter(|_| judged.is_none()).map(str::to_owned),
        judged,
        process,
        passwd,
        group_sources: group_sources(host),
    })
}

/// Rows of `/etc/passwd` and `/etc/group` that matter.
pub struct Accounts {
    /// By uid: the asking user, the one behind sudo, the one that `--user` names, and those that were asked for.
    pub passwd: Seen<BTreeMap<u32, PasswdRow>>,
    /// By gid. Members are kept only where they are among those users.
    pub groups: Seen<BTreeMap<u32, GroupRow>>,
    named_uid: Option<u32>,
}

/// Those rows, with those of more users by their names or uids. A recording holds what was kept last of a file, so whoever
/// asks for more users must ask for all.
pub fn accounts(host: &Host, process: Option<&ProcessUser>, more: &BTreeSet<String>) -> Accounts {
    let named = host.options().user.as_deref();
    let ids: BTreeSet<u32> = process
        .into_iter()
        .flat_map(|user| [Some(user.uid), Some(user.real_uid), user.sudo_uid])
        .flatten()
        .chain(named.and_then(|name| name.parse().ok()))
        .collect();

    // Names are compared here, before the door replaces them.
    let named_uid = Cell::new(named.and_then(|name| name.parse().ok()));
    let passwd = host
        .lines("/etc/passwd", &|line| {
            let Some((uid, row)) = parse_passwd(line) else {
                return false;
            };
            if Some(row.name.as_str()) == named {
                named_uid.set(Some(uid));
                return true;
            }
            ids.contains(&uid) || more.contains(&row.name) || more.contains(&uid.to_string())
        })
        .map(|kept| {
            kept.lines
                .iter()
                .filter_map(|line| parse_passwd(line))
                .take(LIMIT)
                // The first row of a uid is the one that counts.
                .fold(BTreeMap::new(), |mut rows, (uid, row)| {
                    rows.entry(uid).or_insert(row);
                    rows
                })
        });
    Accounts {
        groups: groups(host, process, passwd.got()),
        named_uid: named_uid.get(),
        passwd,
    }
}

fn judged(
    named: Option<&str>,
    named_uid: Option<u32>,
    process: Option<&ProcessUser>,
    passwd: Option<&BTreeMap<u32, PasswdRow>>,
) -> Option<JudgedUser> {
    let (uid, via) = match named {
        Some(_) => (named_uid?, "--user"),
        None => (process?.sudo_uid?, "sudo"),
    };
    let name = passwd
        .and_then(|rows| rows.get(&uid))
        .map_or_else(|| uid.to_string(), |row| row.name.clone());
    Some(JudgedUser {
        uid,
        name,
        via: via.to_owned(),
    })
}

/// Rows of groups that matter. Members are kept only where they are users that matter.
fn groups(
    host: &Host,
    process: Option<&ProcessUser>,
    passwd: Option<&BTreeMap<u32, PasswdRow>>,
) -> Seen<BTreeMap<u32, GroupRow>> {
    let mut gids = owning_groups(host);
    if let Some(user) = process {
        gids.extend(&user.groups);
        gids.insert(user.gid);
    }
    gids.extend(
        passwd
            .into_iter()
            .flat_map(|rows| rows.values())
            .map(|row| row.gid),
    );
    let people: BTreeSet<&str> = passwd
        .into_iter()
        .flat_map(|rows| rows.values())
        .map(|row| row.name.as_str())
        .chain(process.and_then(|user| user.name.as_deref()))
        .collect();
    host.lines("/etc/group", &|line| {
        parse_group(line).is_some_and(|(gid, row)| {
            gids.contains(&gid) || USUAL_GROUPS.contains(&row.name.as_str())
        })
    })
    .map(|kept| {
        kept.lines
            .iter()
            .filter_map(|line| parse_group(line))
            .take(LIMIT)
            .fold(BTreeMap::new(), |mut rows, (gid, mut row)| {
                row.members
                    .retain(|member| people.contains(member.as_str()));
                rows.entry(gid).or_insert(row);
                rows
            })
    })
}

/// Groups that own a GPU node.
fn owning_groups(host: &Host) -> BTreeSet<u32> {
    let mut nodes: Vec<String> = NODES.iter().map(|node| (*node).to_owned()).collect();
    for folder in ["/dev/dri", "/dev/accel"] {
        let names = host.list(folder).into_got().unwrap_or_default().names;
        nodes.extend(
            names
                .iter()
                .filter(|name| {
                    ["card", "renderD", "accel"]
                        .iter()
                        .any(|start| name.starts_with(start))
                })
                .take(LIMIT)
                .map(|name| format!("{folder}/{name}")),
        );
    }
    nodes
        .iter()
        .filter_map(|node| host.stat(node).into_got())
        .filter(|stat| stat.kind == "char")
        .filter_map(|stat| stat.gid)
        .collect()
}

/// `NAME:PASSWORD:UID:GID:...`.
fn parse_passwd(line: &str) -> Option<(u32, PasswdRow)> {
    let mut fields = line.split(':');
    let name = fields.next().filter(|name| !name.is_empty())?;
    let uid = fields.nth(1)?.parse().ok()?;
    let gid = fields.next()?.parse().ok()?;
    Some((
        uid,
        PasswdRow {
            name: name.to_owned(),
            gid,
        },
    ))
}

/// `NAME:PASSWORD:GID:MEMBER,MEMBER`.
fn parse_group(line: &str) -> Option<(u32, GroupRow)> {
    let mut fields = line.split(':');
    let name = fields.next().filter(|name| !name.is_empty())?;
    let gid = fields.nth(1)?.parse().ok()?;
    let members = fields
        .next()?
        .split(',')
        .map(str::trim)
        .filter(|member| !member.is_empty())
        .map(str::to_owned)
        .collect();
    Some((
        gid,
        GroupRow {
            name: name.to_owned(),
            members,
        },
    ))
}

/// Sources of the `group:` line. A file without that line means `files`.
pub fn group_sources(host: &Host) -> Seen<Vec<String>> {
    host.lines("/etc/nsswitch.conf", &|line| {
        line.trim_start().starts_with("group:")
    })
    .and_then(|kept| match kept.lines.first() {
        Some(line) => Seen::Got(parse_sources(line)),
        None if kept.whole => Seen::Got(vec!["files".to_owned()]),
        None => Seen::default(),
    })
}

/// The names of `group: files [SUCCESS=merge] systemd # words`.
fn parse_sources(line: &str) -> Vec<String> {
    let line = line.split('#').next().unwrap_or_default();
    let mut in_brackets = false;
    line.split_whitespace()
        .skip(1)
        .filter(|word| {
            let action = in_brackets || word.starts_with('[');
            in_brackets = action && !word.ends_with(']');
            !action
        })
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steering_table_is_sorted_and_has_reasons() {
        assert!(STEERING.is_sorted_by(|one, other| one.0 < other.0));
        assert!(STEERING.iter().all(|(_, reason)| !reason.is_empty()));
        for name in ONLY_SET {
            assert!(STEERING.iter().any(|(known, _)| known == name), "{name}");
        }
    }

    #[test]
    fn rows_of_passwd_and_group() {
        assert_eq!(
            parse_passwd("USER:x:1000:1001::/home/USER:/bin/bash"),
            Some((
                1000,
                PasswdRow {
                    name: "USER".to_owned(),
                    gid: 1001
                }
            ))
        );
        let (gid, row) = parse_group("video:x:44:a, b,").expect("a row");
        assert_eq!((gid, row.name.as_str()), (44, "video"));
        assert_eq!(row.members, ["a", "b"]);
        for bad in [
            "",
            "+::::::",
            ":x:1:1",
            "a:x:-1:1",
            "a:x:99999999999:1",
            "a",
        ] {
            assert_eq!(parse_passwd(bad), None, "{bad}");
        }
        for bad in ["", "+:::", "a:x:1", "a:x:b:c"] {
            assert_eq!(parse_group(bad), None, "{bad}");
        }
    }

    #[test]
    fn sources_without_actions() {
        assert_eq!(
            parse_sources("group:  files [SUCCESS=merge] sss [ NOTFOUND = return ] systemd # ldap"),
            ["files", "sss", "systemd"]
        );
        assert!(parse_sources("group:").is_empty());
    }

    #[test]
    fn judged_user() {
        let process = ProcessUser {
            uid: 0,
            sudo_uid: Some(1000),
            ..ProcessUser::default()
        };
        let rows = BTreeMap::from([(
            1000,
            PasswdRow {
                name: "USER".to_owned(),
                gid: 1000,
            },
        )]);
        let by_sudo = judged(None, None, Some(&process), Some(&rows)).expect("sudo");
        assert_eq!(
            (by_sudo.uid, by_sudo.name.as_str(), by_sudo.via.as_str()),
            (1000, "USER", "sudo")
        );
        assert_eq!(
            judged(Some("nobody-here"), None, Some(&process), Some(&rows)),
            None
        );
        let by_id = judged(Some("77"), Some(77), None, None).expect("a number is enough");
        assert_eq!((by_id.uid, by_id.name.as_str()), (77, "77"));
        assert_eq!(judged(None, None, None, None), None);
    }
}
