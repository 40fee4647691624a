//! One file a subcommand.

mod advise;
mod all;
mod challenge;
mod compare;
mod report;
mod study;

use clap::{Args, Parser, Subcommand};
use onrush_terminal::failure::Outcome;
use onrush_terminal::interruption::clean_up_when_interrupted;

/// Onrush beside its baselines: studies, verdicts, reports and advice.
#[derive(Parser)]
#[command(name = "onrush-lab", version, about, after_help = EXAMPLES, max_term_width = 100)]
pub struct OnrushLab {
    #[command(subcommand)]
    command: LabCommand,
}

const EXAMPLES: &str = "\
Examples:
  onrush-lab run keys --quick                   a study beside the baselines
  onrush-lab show lab-keys-quick.sqlite         its results
  onrush-lab compare before.sqlite after.sqlite
  onrush-lab advise orders.sql --quick          what to use for a table of your own

`onrush-lab list` names the studies and targets; docs/lab.md says what they mean. One load of Onrush alone, \
and what a disk allows: `onrush lab run singleton`, `onrush lab disk`.";

#[derive(Subcommand)]
enum LabCommand {
    Run(Box<RunArguments>),
    List(study::ListArguments),
    Show(study::ShowArguments),
    Report(report::ReportArguments),
    Compare(compare::CompareArguments),
    Advise(advise::AdviseArguments),
    #[command(hide = true)]
    Instance,
}

/// Run a study and explain the result
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = study::EXAMPLES, subcommand_help_heading = "Experiments")]
struct RunArguments {
    #[command(subcommand)]
    experiment: Option<Experiment>,
    #[command(flatten)]
    study: study::StudyArguments,
}

#[derive(Subcommand)]
enum Experiment {
    Challenge(challenge::ChallengeArguments),
}

/// Runs `onrush-lab ...`.
pub fn run(arguments: OnrushLab) -> Outcome {
    clean_up_when_interrupted(|| {
        onrush_lab::clean_up();
        study::tell_how_to_continue();
    });
    match arguments.command {
        LabCommand::Run(run) => match &run.experiment {
            Some(Experiment::Challenge(arguments)) => challenge::run(arguments),
            None => study::run(&run.study),
        },
        LabCommand::List(arguments) => study::list(&arguments),
        LabCommand::Show(arguments) => study::show(&arguments),
        LabCommand::Report(arguments) => report::run(&arguments),
        LabCommand::Compare(arguments) => compare::run(&arguments),
        LabCommand::Advise(arguments) => advise::run(&arguments),
        LabCommand::Instance => {
            let (input, output) = (std::io::stdin().lock(), std::io::stdout().lock());
            Ok(onrush_lab::target::serve_instance(input, output)?)
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_flags_are_consistent() {
        super::OnrushLab::command().debug_assert();
    }
}
