//! `gpucheck generate`: the documentation that comes from the program itself, for packagers and for the project's own tree.
//! The same program writes the same bytes, anywhere. The JSON Schemas of the tree are not among them: only tests need what
//! makes them (`report/json.rs`).

use super::GOOD;
use super::explain::{facts, lines};
use crate::check::Check;
use crate::cli::{Cli, GenerateArgs};
use crate::tables::Tables;
use crate::{checks, files};
use anyhow::{Context, Result};
use clap::CommandFactory;
use clap_complete::Shell;
use std::io;
use std::path::PathBuf;

/// Writes all files into the folder.
pub fn run(args: &GenerateArgs) -> Result<u8> {
    for (name, text) in generated()? {
        let path = args.folder.join(name);
        files::write_public(&path, text.as_bytes())
            .with_context(|| format!("cannot write `{}`", path.display()))?;
    }
    Ok(GOOD)
}

/// The files with their paths below the folder.
///
/// # Errors
/// None in practice: everything is written to memory.
pub fn generated() -> io::Result<Vec<(PathBuf, String)>> {
    let mut files = vec![("checks.md".into(), checks_page())];
    for shell in [
        Shell::Bash,
        Shell::Zsh,
        Shell::Fish,
        Shell::Elvish,
        Shell::PowerShell,
    ] {
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut public(), "gpucheck", &mut text);
        let path = PathBuf::from(format!("completions/gpucheck.{shell}"));
        files.push((path, utf8(text)?));
    }
    let mut command = Cli::command();
    command.build();
    manual_pages(&command, "gpucheck", &mut files)?;
    files.sort();
    Ok(files)
}

/// The command line without hidden commands, which the completions of some shells would show.
fn public() -> clap::Command {
    let all = Cli::command();
    let shown = all
        .get_subcommands()
        .filter(|command| !command.is_hide_set());
    clap::Command::new("gpucheck")
        .version(env!("CARGO_PKG_VERSION"))
        .disable_help_subcommand(true)
        .args(all.get_arguments())
        .subcommands(shown)
}

/// The page of a command and those of its subcommands, except hidden ones.
fn manual_pages(
    command: &clap::Command,
    name: &str,
    files: &mut Vec<(PathBuf, String)>,
) -> io::Result<()> {
    let mut text = Vec::new();
    clap_mangen::Man::new(command.clone())
        .title(name)
        .source(concat!("gpucheck ", env!("CARGO_PKG_VERSION")))
        .render(&mut text)?;
    files.push((
        PathBuf::from(format!("man/{name}.1")),
        with_examples(&utf8(text)?),
    ));
    for subcommand in command.get_subcommands() {
        if !subcommand.is_hide_set() {
            let name = format!("{name}-{}", subcommand.get_name());
            manual_pages(subcommand, &name, files)?;
        }
    }
    Ok(())
}

/// The text behind the flags in sections of their own, its lines left as they are.
fn with_examples(page: &str) -> String {
    if !page.contains(".SH EXTRA\n") {
        return page.to_owned();
    }
    page.replace(".SH EXTRA\nExamples:\n", ".SH EXAMPLES\n.nf\n")
        .replace("\n\nExit status:\n", "\n.fi\n.SH EXIT STATUS\n.nf\n")
        .replace("\n.SH VERSION\n", "\n.fi\n.SH VERSION\n")
}

fn utf8(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(io::Error::other)
}

fn checks_page() -> String {
    let mut checks: Vec<&Check> = checks::ALL.iter().collect();
    checks.sort_by_key(|check| (check.link, check.name));
    let names: Vec<&str> = checks.iter().map(|check| check.name).collect();
    let index = Tables::embedded().checks(&names);
    let mut text = "# Checks\n\nWritten by `gpucheck generate`. `gpucheck explain NAME` prints one of these.\n".to_owned();
    let mut link = None;
    for check in &checks {
        if link != Some(check.link) {
            text += &format!("\n**{}**\n\n", check.link.name());
            link = Some(check.link);
        }
        let summary = super::list::summary(check.explanation);
        text += &format!("- [`{0}`](#{0}): {1}\n", check.name, summary);
    }
    for check in &checks {
        let row = index.iter().find(|row| row.name == check.name);
        text += &format!("\n## {}\n\n*{}*\n\n", check.name, facts(check, row));
        for line in lines(check.explanation) {
            // One level deeper, below the name of the check.
            let deeper = if line.starts_with("## ") { "#" } else { "" };
            text += &format!("{deeper}{line}\n");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_files_each_time() {
        let files = generated().expect("memory");
        assert_eq!(files, generated().expect("memory"));
        let names: Vec<String> = files
            .iter()
            .map(|(path, _)| path.display().to_string())
            .collect();
        assert_eq!(
            names,
            [
                "checks.md",
                "completions/gpucheck.bash",
                "completions/gpucheck.elvish",
                "completions/gpucheck.fish",
                "completions/gpucheck.powershell",
                "completions/gpucheck.zsh",
                "man/gpucheck-advise.1",
                "man/gpucheck-capture.1",
                "man/gpucheck-explain.1",
                "man/gpucheck-fit.1",
                "man/gpucheck-generate.1",
                "man/gpucheck-list.1",
                "man/gpucheck-tables.1",
                "man/gpucheck.1",
            ]
        );
        for (path, text) in &files {
            assert!(!text.is_empty(), "{}", path.display());
            let hidden = text.contains("probe files") || text.contains("gpucheck-probe");
            assert!(!hidden, "{} names a hidden command", path.display());
        }
    }
}
