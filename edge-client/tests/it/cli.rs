//! The program itself: exit codes, what it tells and what it keeps to itself.
use crate::host::{Fake, card, live};
use edge_client::agent::Means;
use edge_client::secret::Secret;
use edge_client::store::Store;
use image::{GrayImage, Luma};
use models::fed::Disclosure;
use models::id::Hash;
use models::wire::Token;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Exit code, standard output and standard error.
fn run(dir: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_edge-client"));
    command.args(args).current_dir(dir).stdin(Stdio::null()).env_remove("SPECTRA_CONFIG");
    let ended = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (ended.status.code(), text(&ended.stdout), text(&ended.stderr))
}

const HOST: [&str; 5] = ["enroll", "--host", "https://127.0.0.1:1", "--dir", "d"];

#[test]
fn a_token_among_the_arguments_is_never_repeated() {
    let home = tempfile::tempdir().unwrap();
    let token = Token { secret: [7; 16], authority: Hash::of(b"a"), not_after: u64::MAX }.to_string();
    let cut = &token[..token.len() - 3];
    let joined = format!("--token={token}");
    for more in [&["--token", &token][..], &[&joined], &["--token", cut], &["--tokne", &token], &[&token]] {
        let (code, out, err) = run(home.path(), &[&HOST[..], more].concat());
        assert_eq!((code, out.contains(cut), err.contains(cut)), (Some(2), false, false), "{err}");
        assert!(err.contains("standard input"), "{err}");
    }
    fs::write(home.path().join("no.token"), "not a token").unwrap();
    let (code, _, err) = run(home.path(), &[&HOST[..], &["--token", "no.token"]].concat());
    assert_eq!((code, err.contains("not a Spectra token")), (Some(2), true), "{err}");
    let (code, _, err) = run(home.path(), &HOST);
    assert_eq!((code, err.contains("`--token FILE`")), (Some(2), true), "{err}");
}

#[test]
fn what_another_command_line_would_mend_ends_with_2_and_is_told_once() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("bytes.toml"), [0xff, 0xfe]).unwrap();
    for config in ["absent.toml", "bytes.toml", "/dev/zero", "."] {
        let (code, _, err) = run(home.path(), &["status", "--dir", "d", "--config", config]);
        assert_eq!(code, Some(2), "{config}: {err}");
        assert_eq!(err.matches(config).count(), 1, "{err}");
    }
    let (code, _, err) = run(home.path(), &["bench", "train", "--arch", "nope"]);
    assert_eq!((code, err.contains("cc28")), (Some(2), true), "{err}");
    let (_, _, err) = run(home.path(), &["ort", "install", "--from", "absent.whl"]);
    assert_eq!(err.matches("No such file").count(), 1, "{err}");
}

/// A board that took part, in `dir`; with its final model, or stopped before that came.
fn board(dir: &Path, is_final: bool) {
    let (ended, _) = live(dir, &Fake::new(), Disclosure::FullModel, Means { minutes: 60, memory: 1 << 30 });
    ended.unwrap();
    let mut store = Store::open(dir).unwrap();
    let before = |record: &mut edge_client::store::Record| {
        record.model = Some(card());
        if !is_final {
            (record.personal.held, record.personal.adapted) = (None, Secret::default());
        }
    };
    store.update(before).unwrap();
}

#[test]
fn an_answer_before_the_final_model_says_what_it_is() {
    let home = tempfile::tempdir().unwrap();
    GrayImage::from_pixel(4, 4, Luma([9])).save(home.path().join("good.png")).unwrap();
    let infer = ["infer", "--dir", "d", "--engine", "native", "--format", "json", "good.png"];
    let export = ["export", "--dir", "d", "--out", "models"];
    for is_final in [false, true] {
        board(&home.path().join("d"), is_final);
        let (code, out, err) = run(home.path(), &infer);
        assert_eq!(code, Some(0), "{err}");
        let rows: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!(rows[0]["final_model"], is_final, "{out}");
        assert_eq!(err.contains("doesn't have its personal model yet"), !is_final, "{err}");
        let (code, _, err) = run(home.path(), &export);
        assert_eq!(code, Some(0), "{err}");
        assert_eq!(err.contains("doesn't have its personal model yet"), !is_final, "{err}");
        assert_eq!(err.contains("has one stream"), is_final, "{err}");
        fs::remove_dir_all(home.path().join("d")).unwrap();
    }
}

#[test]
fn inputs_that_can_not_be_answered_end_with_1_after_the_others() {
    let home = tempfile::tempdir().unwrap();
    GrayImage::from_pixel(4, 4, Luma([9])).save(home.path().join("good.png")).unwrap();
    board(&home.path().join("d"), true);
    assert!(Command::new("mkfifo").arg(home.path().join("pipe.png")).status().unwrap().success());
    let infer = ["infer", "--dir", "d", "--engine", "native", "--format", "csv"];
    let (code, out, err) =
        run(home.path(), &[&infer[..], &["missing.png", "good.png", "pipe.png", "/dev/zero"]].concat());
    assert_eq!((code, out.contains("good.png")), (Some(1), true), "{err}");
    assert!(err.contains("missing.png") && err.contains("not a regular file"), "{err}");
}
