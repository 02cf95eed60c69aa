//! The user is in the group by now, but this login began before.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::facts::environment::{GroupRow, Users};
use crate::finding::Finding;
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::access::Denial;
use crate::view::{Stack, View};
use std::collections::BTreeMap;

crate::check! {
    /// The user was put into the group that may use the GPU, but this login does not know it yet.
    ///
    /// ## Why it matters
    /// A process gets its groups at login and hands them on. Until the next login the GPU stays shut for it, and adding the
    /// user to the group once more changes nothing.
    ///
    /// ## How it comes about
    /// `usermod -aG` changes `/etc/group`. Running sessions keep what they have; tmux, screen, the terminal of an editor and
    /// lingering user services keep it for days, also across a new login.
    ///
    /// ## How to confirm
    /// `id` shows the groups of this process, `id USER` those of the files: they differ.
    "group-change-needs-relogin", Access, Warning, each Stack, run
}

fn run(stack: Stack, view: &View, _: &Tables) -> Verdict {
    if view.wsl().is_some() {
        return Verdict::NotHere;
    }
    let doors = view.doors(stack);
    let Some(users) = view.facts.users.got() else {
        return Verdict::cannot_tell(format!("who asks: {}", view.facts.users.why()), "`id`");
    };
    // For a user other than the caller only the files are known, and no session.
    if users.judged.is_some() {
        return Verdict::NotHere;
    }
    if doors.denied.is_empty() {
        return match doors.unknown {
            Some(why) => Verdict::cannot_tell(why, "`ls -l` of the node and `id`"),
            None => Verdict::NotHere,
        };
    }
    let mut cannot_tell = None;
    for (_, denial) in &doors.denied {
        match in_group_by_now(denial, users) {
            Ok(Some((file, group))) => {
                let finding = found(denial, file, &group);
                return match doors.only_gpus() {
                    Some(gpus) => finding.only_gpus(gpus).into(),
                    None => finding.into(),
                };
            }
            Ok(None) => {}
            Err(why) => cannot_tell = Some(why),
        }
    }
    if let Some(why) = cannot_tell {
        return Verdict::cannot_tell(why, "`getent passwd`, `getent group` and `id`");
    }
    match directory_service(users) {
        Some(service) => Verdict::cannot_tell(
            format!("/etc/group does not list the user, and groups come from {service}, too"),
            "`id` and `id USER`, which differ where a new login is needed",
        ),
        None => Verdict::fine("the files do not put the user into the owning group either"),
    }
}

/// A source of groups that is no file, where `/etc/nsswitch.conf` names one.
fn directory_service(users: &Users) -> Option<&str> {
    let sources = users.group_sources.got()?;
    sources
        .iter()
        .map(String::as_str)
        .find(|source| !matches!(*source, "files" | "compat" | "systemd" | "altfiles"))
}

/// The file that says so and the name of the owning group, where the user is in it by now, the process is not, and it
/// would help. An error says which file could not be asked, and why.
fn in_group_by_now(
    denial: &Denial,
    users: &Users,
) -> Result<Option<(&'static str, String)>, String> {
    let Some(stat) = &denial.stat else {
        return Ok(None);
    };
    if denial.mode_allows || stat.mode & 0o060 != 0o060 {
        return Ok(None);
    }
    let Seen::Got(process) = &users.process else {
        return Err(format!("who asks: {}", users.process.why()));
    };
    if process.groups.contains(&stat.gid) {
        return Ok(None);
    }
    let row = users.passwd.got().and_then(|rows| rows.get(&process.uid));
    let named = |groups: &BTreeMap<u32, GroupRow>| {
        groups
            .get(&stat.gid)
            .map_or_else(|| stat.gid.to_string(), |group| group.name.clone())
    };
    if row.is_some_and(|row| row.gid == stat.gid) {
        let group = users
            .groups
            .got()
            .map_or_else(|| stat.gid.to_string(), named);
        return Ok(Some(("/etc/passwd", group)));
    }
    let Seen::Got(groups) = &users.groups else {
        return Err(format!("/etc/group: {}", users.groups.why()));
    };
    if let Some(group) = groups.get(&stat.gid) {
        let Some(name) = process.name.as_ref().or(row.map(|row| &row.name)) else {
            return Err("/etc/passwd: the name of this user is not known".to_owned());
        };
        if group.members.contains(name) {
            return Ok(Some(("/etc/group", group.name.clone())));
        }
    }
    // The primary group stands in the other file.
    match &users.passwd {
        Seen::Got(_) | Seen::Absent => Ok(None),
        unknown => Err(format!("/etc/passwd: {}", unknown.why())),
    }
}

fn found(denial: &Denial, file: &'static str, group: &str) -> Finding {
    let (mode, gid) = denial
        .stat
        .as_ref()
        .map_or((0, 0), |stat| (stat.mode, stat.gid));
    Finding::new(format!(
        "this login does not know yet that the user is in group {group}: log in again"
    ))
    .saw(file, format!("the user is in group {gid}, {group}"))
    .saw("getgroups()", format!("{gid} is not among them"))
    .saw(
        denial.path.as_str(),
        format!("mode {mode:04o}, group {gid}; {}", denial.by),
    )
    .why("A process keeps the groups that it had at login, and so does everything started from it")
    .fix(FixCall::new("log-in-again").with("group", group))
}
