//! `gpucheck advise`: what to install, and what a GPU is good for. It prints and installs nothing.

use super::look::{look, replay};
use super::{GOOD, style_for, tables_of};
use crate::advise::{self, Advice, GpuAdvice, Line, Plan, Purpose, State, Step};
use crate::chain::{self, Subject};
use crate::check::Verdict;
use crate::checks;
use crate::cli::{AdviseArgs, AdviseFor, ListFormat};
use crate::files;
use crate::finding::Severity;
use crate::report::json;
use crate::report::page::{Page, Sign, sign_line};
use crate::report::style::{Style, clean};
use crate::view::View;
use anyhow::Result;
use clap::ColorChoice;
use std::path::Path;

/// Where the text of a step starts.
const STEP: usize = 4;

/// Looks and advises.
pub fn run(args: &AdviseArgs, color: ColorChoice) -> Result<u8> {
    let is_here = args.replay.is_none() && args.look.root.is_none();
    let tables = tables_of(args.data.as_deref(), is_here)?;
    let looked = match &args.replay {
        Some(machine) => replay(machine, &args.look, &tables)?,
        None => look(&args.look, &tables, false)?,
    };
    let purpose = args.purpose.map(|purpose| match purpose {
        AdviseFor::Cuda => Purpose::Cuda,
        AdviseFor::Rocm => Purpose::Rocm,
        AdviseFor::Pytorch => Purpose::Pytorch,
    });
    let view = View::new(&looked.facts, &tables, &[]);
    let answers = chain::judge(checks::ALL, &view, &tables);
    let fault = answers
        .iter()
        .find_map(|answer| match (&answer.verdict, &answer.subject) {
            (Verdict::Found(finding), Subject::Gpu(_) | Subject::Stack(_))
                if answer.is_open() && answer.severity == Severity::Error =>
            {
                Some(finding.title.clone())
            }
            _ => None,
        });
    let advice = advise::advise(&view, &tables, purpose).with_fault(fault);
    let stdout = Path::new("-");
    let text = match args.format {
        ListFormat::Json => json::text(&advice)?,
        ListFormat::Terminal => page(&advice, &style_for(stdout, color)),
    };
    files::write(stdout, text.as_bytes())?;
    Ok(GOOD)
}

fn page(advice: &Advice, style: &Style) -> String {
    let mut page = Page {
        style,
        text: String::new(),
    };
    page.paragraph(0, &clean(&advice.system));
    sign_line(
        sign(advice),
        &format!("{}.", clean(&advice.summary)),
        &mut page,
    );
    if !advice.boot.is_empty() {
        page.heading("Next restart");
        steps(&advice.boot, &mut page);
    }
    // Cards of one kind are many in a server, and what there is to say of them is the same.
    let mut rest: Vec<&GpuAdvice> = advice.gpus.iter().collect();
    while let Some(first) = rest.first().copied() {
        let (alike, others): (Vec<&GpuAdvice>, Vec<&GpuAdvice>) =
            rest.into_iter().partition(|other| is_alike(first, other));
        let keys: Vec<&str> = alike.iter().map(|gpu| gpu.key.as_str()).collect();
        gpu(first, &keys, &mut page);
        rest = others;
    }
    for one in &advice.plans {
        plan(one, &mut page);
    }
    page.text
}

fn is_alike(one: &GpuAdvice, other: &GpuAdvice) -> bool {
    let without_key = |gpu: &GpuAdvice| GpuAdvice {
        key: String::new(),
        ..gpu.clone()
    };
    without_key(one) == without_key(other)
}

/// The worst of what was found.
fn sign(advice: &Advice) -> Sign {
    let is = |wanted: &[State]| advice.gpus.iter().any(|gpu| wanted.contains(&gpu.state));
    if is(&[State::Wrong, State::Unfinished]) || advice.fault.is_some() {
        Sign::Bad
    } else if is(&[State::Missing]) || !advice.boot.is_empty() {
        Sign::Warning
    } else if is(&[State::Unknown, State::Held]) {
        Sign::Unknown
    } else if is(&[State::Right]) {
        Sign::Good
    } else {
        Sign::None
    }
}

fn gpu(gpu: &GpuAdvice, keys: &[&str], page: &mut Page) {
    let name = gpu.name.as_deref().unwrap_or("a GPU without a known name");
    page.heading(&format!("{name} ({})", keys.join(", ")));
    let generation = match (&gpu.generation, &gpu.target) {
        (Some(generation), Some(target)) => format!("{generation} ({target})"),
        (Some(one), None) | (None, Some(one)) => one.clone(),
        (None, None) => "not in the tables".to_owned(),
    };
    page.item("generation", &generation);
    page.item("driver now", &gpu.driver);
    lines("What can run it:", &gpu.support, page);
    lines("What it is good for:", &gpu.good_for, page);
}

fn lines(title: &str, lines: &[Line], page: &mut Page) {
    if lines.is_empty() {
        return;
    }
    page.paragraph(2, title);
    for line in lines {
        page.item(line.label, &line.text);
    }
}

fn plan(plan: &Plan, page: &mut Page) {
    let title = match plan.gpus.is_empty() {
        true => format!("Plan: {}", plan.title),
        false => format!("Plan: {} for {}", plan.title, plan.gpus.join(", ")),
    };
    page.heading(&title);
    steps(&plan.steps, page);
    if let Some(confirm) = &plan.confirm {
        let painted = page.style.dim("Then:");
        page.hang(
            0,
            ("Then:", &painted),
            STEP + 3,
            &clean(confirm),
            str::to_owned,
        );
    }
}

fn steps(steps: &[Step], page: &mut Page) {
    for (index, step) in steps.iter().enumerate() {
        let number = format!("{}.", index + 1);
        page.hang(
            0,
            (&number, &number),
            STEP,
            &clean(&step.words),
            str::to_owned,
        );
        if let Some(why) = &step.why {
            let painted = page.style.dim("why:");
            page.hang(
                STEP,
                ("why:", &painted),
                STEP + 5,
                &clean(why),
                str::to_owned,
            );
        }
        for command in &step.commands {
            page.verbatim(STEP + 2, &page.style.bold(&clean(command)));
        }
    }
}
