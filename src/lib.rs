//! `probe -> facts -> check -> finding -> report`: data flows one way and each arrow is a plain function. Probes ask the
//! machine through `host`, the only door to it, and fill `facts`, one field a source. `view` joins the facts per GPU.
//! Checks look at the view and answer; `chain` folds what one root explains; `readiness` draws the headline. `report`
//! holds what is said, and one function per format writes it. `commands` is all that prints. `docs/design.md` says why.
#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        reason = "tests make and read files of their own"
    )
)]

pub mod advise;
pub mod chain;
pub mod check;
pub mod checks;
pub mod cli;
pub mod commands;
pub mod facts;
pub mod files;
pub mod finding;
pub mod fit;
pub mod fix;
pub mod host;
pub mod probes;
pub mod readiness;
pub mod report;
pub mod tables;
pub mod terms;
pub mod version;
pub mod view;
#[cfg(target_os = "linux")]
pub mod worker;
