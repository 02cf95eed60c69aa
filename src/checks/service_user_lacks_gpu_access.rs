//! A service that computes may not open the GPU's device nodes, whatever the user at the keyboard may do.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::facts::services::{ServiceUser, Unit};
use crate::finding::{Evidence, Finding};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::access::{SERVICES, StackNode};
use crate::view::{Stack, View};

crate::check! {
    /// A service that computes on the GPU runs as a user who may not open the device nodes, or is shut out by its own unit.
    ///
    /// ## Why it matters
    /// A service has the groups of its own user, not those of whoever asks it. Servers of language models do not fail then: they
    /// compute on the processor, at a fraction of the speed. What programs of this user may do is not concerned.
    ///
    /// ## How it comes about
    /// The user that the package made is in neither `render` nor `video` (`groups`). Or the unit hides devices (`device-policy`):
    /// `PrivateDevices=yes`, or `DevicePolicy=` and `DeviceAllow=` that do not name the GPU's nodes. Looked at are services that are
    /// known to compute (Ollama, vLLM, llama-server, LocalAI, ComfyUI) and that run or are started at boot.
    ///
    /// ## How to confirm
    /// `systemctl cat ollama`, `id ollama`, `ls -l /dev/kfd /dev/dri/renderD* /dev/nvidia*`.
    "service-user-lacks-gpu-access", Access, Error, each Stack, run
}

/// Majors that systemd may name in `DeviceAllow=char-NAME`, by the start of the paths that they stand for.
const MAJORS: [(&str, &[&str]); 4] = [
    ("/dev/nvidia-uvm", &["nvidia-uvm"]),
    ("/dev/nvidia", &["nvidia", "nvidia-frontend", "nvidiactl"]),
    ("/dev/dri/", &["drm"]),
    ("/dev/kfd", &["kfd"]),
];

fn run(stack: Stack, view: &View, _: &Tables) -> Verdict {
    // Under WSL everybody may open /dev/dxg.
    if view.wsl().is_some() {
        return Verdict::NotHere;
    }
    let nodes: Vec<StackNode> = view
        .nodes_of(stack)
        .into_iter()
        .filter(|node| !node.npu && view.node(&node.path).got().is_some())
        .collect();
    if nodes.is_empty() {
        return Verdict::NotHere;
    }
    let services = match &view.facts.services {
        Seen::Got(services) => services,
        Seen::Absent => return Verdict::NotHere,
        other => {
            return Verdict::cannot_tell(
                format!("which services there are: {}", other.why()),
                "`systemctl cat ollama`",
            );
        }
    };
    let mut unknown = None;
    let mut fine = Vec::new();
    for &(name, _) in SERVICES.iter().filter(|(_, alone)| *alone) {
        let unit = match services.units.get(name) {
            Some(Seen::Got(unit)) => unit,
            Some(Seen::Absent) | None => continue,
            Some(other) => {
                unknown.get_or_insert(format!("{name}: {}", other.why()));
                continue;
            }
        };
        if !unit.is_used() {
            continue;
        }
        match judge(name, unit, &nodes, view) {
            Access::Open => fine.push(name),
            Access::Shut(finding) => return Verdict::Found(finding),
            Access::Unknown(why) => {
                unknown.get_or_insert(why);
            }
        }
    }
    match unknown {
        Some(why) => Verdict::cannot_tell(
            why,
            "`systemctl cat` of the service and `id` of the user that it runs as",
        ),
        None if fine.is_empty() => Verdict::NotHere,
        None => Verdict::fine(format!("{} may open the nodes", fine.join(", "))),
    }
}

enum Access {
    Open,
    Shut(Box<Finding>),
    Unknown(String),
}

fn judge(name: &str, unit: &Unit, nodes: &[StackNode], view: &View) -> Access {
    let setting = |key: &str| unit.settings.get(key).and_then(|values| values.last());
    // What a drop-in says that could not be read may change everything.
    if !unit.whole {
        return Access::Unknown(format!("{name}: not all of its files could be read"));
    }
    if setting("RootDirectory").or(setting("RootImage")).is_some() {
        return Access::Unknown(format!("{name} runs in a root of its own"));
    }
    match by_policy(unit, nodes) {
        Policy::Open => {}
        Policy::Unknown(entry) => {
            return Access::Unknown(format!("{name}: which nodes DeviceAllow={entry} means"));
        }
        Policy::Shut(evidence) => return by_unit(name, unit, evidence, nodes),
    }
    let is_dynamic = setting("DynamicUser").is_some_and(|value| is_yes(value));
    let own_name = name.trim_end_matches(".service").to_owned();
    let user = match setting("User") {
        Some(user) => user,
        // systemd makes one of the unit's name.
        None if is_dynamic => &own_name,
        // root.
        None => return Access::Open,
    };
    let known = view
        .facts
        .services
        .got()
        .and_then(|services| services.users.get(user));
    let (uid, mut groups) = match known {
        Some(ServiceUser { uid: 0, .. }) => return Access::Open,
        Some(known) => match &known.groups {
            Seen::Got(groups) => (
                known.uid,
                [vec![known.gid], groups.keys().copied().collect()].concat(),
            ),
            other => return Access::Unknown(format!("groups of {user}: {}", other.why())),
        },
        // Made when the service starts, and in no group but those that the unit names.
        None if is_dynamic => (u32::MAX, Vec::new()),
        None => {
            return Access::Unknown(format!(
                "{name} runs as {user}, whom /etc/passwd does not name"
            ));
        }
    };
    groups.extend(of_unit(unit, view));
    let mut shut = Vec::new();
    let (mut needed, mut gives_a_gpu) = (false, false);
    for StackNode { path, gpu, .. } in nodes {
        match view.permits(path, uid, &groups) {
            Some(true) => gives_a_gpu |= gpu.is_some(),
            Some(false) => {
                needed |= gpu.is_none();
                shut.push(path.as_str());
            }
            None => {
                return Access::Unknown(format!("{path}: its mode or access list is not known"));
            }
        }
    }
    // One GPU of several is enough, and may be all that it is meant to have.
    if shut.is_empty() || gives_a_gpu && !needed {
        return Access::Open;
    }
    if let Some(why) = groups_unknown(view) {
        return Access::Unknown(format!("groups of {user}: {why}"));
    }
    let made_at_start = known.is_none();
    by_groups((name, unit), (user, made_at_start), &shut, view)
}

/// Groups that the unit itself gives the service, as far as they concern GPUs.
fn of_unit(unit: &Unit, view: &View) -> Vec<u32> {
    let rows = view.facts.users.got().and_then(|users| users.groups.got());
    let named = ["Group", "SupplementaryGroups"]
        .iter()
        .filter_map(|key| unit.settings.get(*key))
        .flatten()
        .flat_map(|value| value.split_whitespace());
    named
        .filter_map(|group| {
            group.parse().ok().or_else(|| {
                let (gid, _) = rows?.iter().find(|(_, row)| row.name == group)?;
                Some(*gid)
            })
        })
        .collect()
}

/// Why a user may be in groups that `/etc/group` does not tell of.
fn groups_unknown(view: &View) -> Option<String> {
    let users = view.facts.users.got()?;
    if users.groups.got().is_none() {
        return Some(format!("/etc/group: {}", users.groups.why()));
    }
    let sources = users.group_sources.got()?;
    sources
        .iter()
        .find(|source| !matches!(source.as_str(), "files" | "compat" | "systemd" | "altfiles"))
        .map(|source| format!("{source} may know of others"))
}

fn is_yes(value: &str) -> bool {
    matches!(
        value.to_ascii_lowercase().as_str(),
        "yes" | "true" | "1" | "on"
    )
}

enum Policy {
    Open,
    Shut(Evidence),
    /// This entry may or may not mean them.
    Unknown(String),
}

/// What the unit says of devices (systemd.resource-control(5), systemd.exec(5)).
fn by_policy(unit: &Unit, nodes: &[StackNode]) -> Policy {
    let last = |key: &str| unit.settings.get(key).and_then(|values| values.last());
    let shut = |says: String| {
        Policy::Shut(Evidence {
            source: unit.drop_ins.last().unwrap_or(&unit.file).clone(),
            says,
        })
    };
    if last("PrivateDevices").is_some_and(|value| is_yes(value)) {
        return shut(
            "PrivateDevices=yes: the service has a /dev of its own without GPUs".to_owned(),
        );
    }
    let allowed = unit
        .settings
        .get("DeviceAllow")
        .map_or(&[][..], Vec::as_slice);
    let policy = last("DevicePolicy").map_or("auto", String::as_str);
    let is_closed = match policy {
        "strict" | "closed" => true,
        _ => !allowed.is_empty(),
    };
    if !is_closed {
        return Policy::Open;
    }
    // Whoever gives a service one GPU of several names only the nodes of that one.
    let mut shut_gpu = None;
    let mut gives_a_gpu = !nodes.iter().any(|node| node.gpu.is_some());
    for node in nodes {
        match (is_allowed(&node.path, allowed), &node.gpu) {
            (Ok(true), gpu) => gives_a_gpu |= gpu.is_some(),
            (Ok(false), None) => return shut(not_among(policy, allowed, &node.path)),
            (Ok(false), Some(_)) => {
                shut_gpu.get_or_insert(node.path.as_str());
            }
            (Err(entry), _) => return Policy::Unknown(entry),
        }
    }
    match shut_gpu {
        Some(path) if !gives_a_gpu => shut(not_among(policy, allowed, path)),
        _ => Policy::Open,
    }
}

fn not_among(policy: &str, allowed: &[String], path: &str) -> String {
    let list = match allowed.is_empty() {
        true => "no DeviceAllow=".to_owned(),
        false => format!("DeviceAllow={}", allowed.join(", ")),
    };
    format!("DevicePolicy={policy}, {list}: {path} is not among them")
}

/// Whether an entry lets a node in. The error: an entry of which that is not known.
fn is_allowed(path: &str, allowed: &[String]) -> Result<bool, String> {
    let names = MAJORS
        .iter()
        .find(|(start, _)| path.starts_with(start))
        .map_or(&[][..], |(_, names)| names);
    for entry in allowed {
        let mut words = entry.split_whitespace();
        let what = words.next().unwrap_or_default();
        let rights = words.next().unwrap_or("rwm");
        let meant = match what.strip_prefix("char-") {
            Some(pattern) => match pattern.strip_suffix('*') {
                Some(start) => names.iter().any(|name| name.starts_with(start)),
                None if pattern.contains(['*', '?', '[']) => return Err(entry.clone()),
                None => names.contains(&pattern),
            },
            // A link, or a folder, which systemd takes for no device.
            None if what != path
                && path.starts_with(what)
                && what.starts_with("/dev/")
                && what.ends_with('/') =>
            {
                return Err(entry.clone());
            }
            None => what == path,
        };
        if meant && rights.contains('r') && rights.contains('w') {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What lets a unit open these nodes.
fn entries(nodes: &[StackNode]) -> String {
    [
        ("/dev/kfd", "/dev/kfd rw"),
        ("/dev/dri/", "char-drm rw"),
        ("/dev/nvidia", "char-nvidia* rw"),
    ]
    .into_iter()
    .filter(|(start, _)| nodes.iter().any(|node| node.path.starts_with(start)))
    .map(|(_, entry)| format!("`DeviceAllow={entry}`"))
    .collect::<Vec<_>>()
    .join(" and ")
}

fn by_unit(name: &str, unit: &Unit, evidence: Evidence, nodes: &[StackNode]) -> Access {
    let finding = runs(
        Finding::new(format!("{name} is kept from the GPU by its own unit"))
            .cause("device-policy")
            .saw(evidence.source, evidence.says),
        unit,
    )
    .only_gpus(Vec::new())
    .why("The service sees no GPU and computes on the processor, or fails; other programs are not concerned")
    .fix(
        FixCall::new("allow-devices-in-unit")
            .with("name", name)
            .with("line", entries(nodes)),
    );
    Access::Shut(Box::new(finding))
}

/// `made_at_start`: systemd makes the user, who can join no group but through the unit.
fn by_groups(
    (name, unit): (&str, &Unit),
    (user, made_at_start): (&str, bool),
    shut: &[&str],
    view: &View,
) -> Access {
    let mut finding = Finding::new(format!(
        "{name} runs as {user}, who may not open {}",
        match shut {
            [path] => (*path).to_owned(),
            [path, ..] => format!("{path} and {} more", shut.len() - 1),
            [] => "the nodes".to_owned(),
        }
    ))
    .cause("groups");
    finding = match unit.settings.get("User").and_then(|values| values.last()) {
        Some(user) => finding.saw(&unit.file, format!("User={user}")),
        None => finding.saw(
            &unit.file,
            format!("DynamicUser=yes: a user {user} is made at each start"),
        ),
    };
    let rows = view.facts.users.got().and_then(|users| users.groups.got());
    let mut owners: Vec<String> = Vec::new();
    for path in shut {
        let Some(stat) = view.node(path).into_got().and_then(|node| node.stat.got()) else {
            continue;
        };
        let group = rows
            .and_then(|rows| rows.get(&stat.gid))
            .map_or_else(|| stat.gid.to_string(), |row| row.name.clone());
        finding = finding.saw(*path, format!("mode {:04o}, group {group}", stat.mode));
        // Nobody should join root's group, and joining helps only where the group may write.
        if stat.gid != 0 && stat.mode & 0o060 == 0o060 && !owners.contains(&group) {
            owners.push(group);
        }
    }
    finding = runs(
        match made_at_start {
            true => finding.saw(
                &unit.file,
                "DynamicUser: the user is in no group but those that the unit names",
            ),
            false => finding.saw(
                "/etc/group",
                format!("{user} is in none of the groups that own them"),
            ),
        },
        unit,
    );
    let fix = match owners.as_slice() {
        [] => FixCall::new("node-udev-rule"),
        groups if made_at_start => FixCall::new("service-groups-in-unit")
            .with("group", groups.join(" "))
            .with("name", name),
        groups => FixCall::new("service-user-joins-group")
            .with("group", groups.join(","))
            .with("user", user)
            .with("name", name),
    };
    // Programs of the user at the keyboard are not concerned.
    let finding = finding
        .only_gpus(Vec::new())
        .why("The service finds no GPU and computes on the processor, although the driver works and other users see it")
        .fix(fix);
    Access::Shut(Box::new(finding))
}

fn runs(finding: Finding, unit: &Unit) -> Finding {
    match (&unit.running, &unit.enabled_by) {
        (Seen::Got(group), _) => finding.saw(group, "is there: the service runs"),
        (_, Seen::Got(folders)) => match folders.first() {
            Some(folder) => finding.saw(folder, "starts it at boot"),
            None => finding,
        },
        _ => finding,
    }
}
