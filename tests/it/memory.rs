//! What a board's program takes over a whole run, everything included.
use workspace_tests::fleet::{Fleet, Setup};
use workspace_tests::process::Process;

/// Most that it may have resident, in bytes.
const MOST: u64 = 48_000_000;

#[test]
fn a_whole_run_of_cpct_on_cc28_stays_within_its_line() {
    let fleet = Fleet::new(&Setup { arch: "cc28", side: 28, ..Setup::default() });
    let mut host = fleet.serve().process;
    let classes: Vec<u16> = (0..256).map(|i| i % 3).collect();
    let boards = ["one", "two"].map(|name| fleet.enroll(name, &classes));
    let running = boards.each_ref().map(|board| {
        let mut run = fleet.edge_client(&["run", "--until-finished", "--threads", "2", "--dir"]);
        Process::start("edge-client run", run.arg(&board.dir).arg("--data").arg(&board.data))
    });
    host.wait_for("training is over");
    for board in running {
        let said = board.succeed().err;
        let last = said.last().unwrap();
        let taken = last.split_whitespace().find_map(|word| word.parse::<u64>().ok());
        let taken = taken.unwrap_or_else(|| panic!("it doesn't say what it took: {last}"));
        assert!(taken > 8 && taken << 20 <= MOST, "{last}");
    }
}
