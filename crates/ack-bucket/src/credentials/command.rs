//! Runs the command that prints credentials: without a shell, outside the working folder, and with
//! limits.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use ack_api::text;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

use super::{CredentialsProblem, FetchedCredentials, MAX_OUTPUT, decode};

/// How long a command may take.
pub(super) const LIMIT: Duration = Duration::from_secs(20);
/// How long to wait for output that a command left in its pipe.
const PIPE_TIMEOUT: Duration = Duration::from_millis(100);

/// Runs a program with its arguments, and decodes what it prints.
pub(super) async fn run(
    command: &[String],
    limit: Duration,
) -> Result<FetchedCredentials, CredentialsProblem> {
    let (program, arguments) = command
        .split_first()
        .ok_or_else(|| CredentialsProblem("there is no command".to_owned()))?;
    let name = format!("`{}`", text::line(program, 100));
    let problem = |what: String| CredentialsProblem(format!("{name} {what}"));
    let mut child = Command::new(program)
        .args(arguments)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| problem(format!("cannot be started: {error}")))?;
    let group = child.id().and_then(|id| i32::try_from(id).ok());
    let ended = match child.stdout.take() {
        Some(output) => timeout(limit, output_of(&mut child, output)).await,
        None => return Err(problem("has no output".to_owned())),
    };
    let failed = match ended {
        Ok(Ok(Output { status, printed })) if status.success() => {
            return decode(&printed, &name);
        }
        Ok(Ok(Output { status, .. })) => {
            format!("failed ({status}); run it in a terminal to see why")
        }
        Ok(Err(Unread::TooLong)) => format!("printed more than {} KiB", MAX_OUTPUT >> 10),
        Ok(Err(Unread::Io(error))) => format!("cannot be read: {error}"),
        Err(_) => format!("took longer than {} s", limit.as_secs_f32()),
    };
    if let Some(group) = group {
        let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
    }
    Err(problem(failed))
}

/// What a command printed, and how it ended.
struct Output {
    status: ExitStatus,
    printed: Vec<u8>,
}

/// Why the output of a command is not used.
enum Unread {
    TooLong,
    Io(std::io::Error),
}

/// Waits for the end of a command. A process that it left behind may keep its output open, so the
/// end of the output is not waited for.
async fn output_of(child: &mut Child, mut output: ChildStdout) -> Result<Output, Unread> {
    let mut printed = Vec::new();
    let mut is_open = true;
    let status = loop {
        tokio::select! {
            read = output.read_buf(&mut printed), if is_open => {
                is_open = read.map_err(Unread::Io)? > 0;
                if printed.len() > MAX_OUTPUT {
                    return Err(Unread::TooLong);
                }
            }
            status = child.wait() => break status.map_err(Unread::Io)?,
        }
    };
    while is_open {
        is_open = matches!(
            timeout(PIPE_TIMEOUT, output.read_buf(&mut printed)).await,
            Ok(Ok(read)) if read > 0
        );
        if printed.len() > MAX_OUTPUT {
            return Err(Unread::TooLong);
        }
    }
    Ok(Output { status, printed })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::block_on;

    fn shell(script: &str) -> Vec<String> {
        ["/bin/sh", "-c", script].map(str::to_owned).to_vec()
    }

    fn ran(script: &str, limit: Duration) -> Result<FetchedCredentials, String> {
        let done = block_on(run(&shell(script), limit)).unwrap();
        done.map_err(|problem| problem.to_string())
    }

    const SHORT: Duration = Duration::from_millis(500);
    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn a_command_gives_a_key_and_perhaps_a_token() {
        let plain = r#"echo '{"Version":1,"AccessKeyId":"AKIA","SecretAccessKey":"s3cret"}'"#;
        let fetched = ran(plain, LONG).unwrap();
        assert_eq!(fetched.credential.key_id, "AKIA");
        assert!(fetched.credential.token.is_none() && fetched.until.is_none());
        let all = r#"echo '{"Version":1,"AccessKeyId":"AKIA","SecretAccessKey":"s3cret",
            "SessionToken":"t0ken","Expiration":"2999-01-01T00:00:00Z"}'"#;
        let fetched = ran(all, LONG).unwrap();
        assert_eq!(fetched.credential.token.as_deref(), Some("t0ken"));
        assert!(fetched.until < fetched.expires);
    }

    #[test]
    fn an_open_pipe_and_a_long_run_do_not_hang() {
        let began = std::time::Instant::now();
        let left = r#"sleep 30 & echo '{"AccessKeyId":"AKIA","SecretAccessKey":"s3cret"}'"#;
        assert_eq!(ran(left, LONG).unwrap().credential.key_id, "AKIA");
        let slow = ran("sleep 30", SHORT).unwrap_err();
        assert_eq!(slow, "`/bin/sh` took longer than 0.5 s");
        let endless = ran("yes s3cret", LONG).unwrap_err();
        assert_eq!(endless, "`/bin/sh` printed more than 64 KiB");
        assert!(began.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn errors_name_the_cause_and_no_secret() {
        for (script, cause) in [
            ("echo s3cret >&2; exit 3", "failed (exit status: 3)"),
            ("echo s3cret", "gave no JSON"),
            (r#"echo '{"AccessKeyId":"s3cret"}'"#, "gave no JSON"),
            (
                r#"echo '{"Version":"s3cret","AccessKeyId":"s3cret","SecretAccessKey":"s3cret"}'"#,
                "gave no JSON",
            ),
            (
                r#"echo '{"Version":2,"AccessKeyId":"a","SecretAccessKey":"s3cret"}'"#,
                "a `Version` other than 1",
            ),
            (
                r#"echo '{"AccessKeyId":"a","SecretAccessKey":"s3cret","Expiration":"s3cret"}'"#,
                "`Expiration` that is not a time",
            ),
            (
                r#"echo '{"AccessKeyId":"a","SecretAccessKey":"s3cret","Expiration":"2020-01-01T00:00:00Z"}'"#,
                "have expired",
            ),
            (
                r#"printf '{"AccessKeyId":"a\\nb","SecretAccessKey":"s3cret"}'"#,
                "are empty or have characters",
            ),
        ] {
            let message = ran(script, LONG).unwrap_err();
            assert!(message.contains(cause), "{script}: {message}");
            assert!(!message.contains("s3cret"), "{script}: {message}");
        }
        let none = block_on(run(&["/no/such/program".to_owned()], LONG)).unwrap();
        let message = none.map(drop).unwrap_err().to_string();
        assert!(message.contains("cannot be started"), "{message}");
    }
}
