import { constants } from 'node:os';
import type { CliIo, TextSink } from './io.ts';
import { runCli } from './run-cli.ts';

const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

/** Runs one command with the streams and signals of the process; returns the exit code. */
export async function runProcess(args: readonly string[], version: string): Promise<number> {
  const controller = new AbortController();
  let signalCode: number | null = null;
  let isSignalAccepted = false;
  const onSignal = (name: (typeof SIGNALS)[number]): void => {
    const code = 128 + constants.signals[name];
    // A second signal ends the process without waiting for cleanup.
    if (signalCode !== null) process.exit(code);
    signalCode = code;
    controller.abort(name);
  };
  for (const name of SIGNALS) process.on(name, onSignal);

  let outputError: string | null = null;
  const onOutputError = (error: NodeJS.ErrnoException): void => {
    outputError ??= error.code ?? error.message;
    controller.abort(outputError);
  };
  process.stdout.on('error', onOutputError);
  process.stderr.on('error', onOutputError);

  const io: CliIo = {
    stdin: process.stdin,
    stdout: toSink(process.stdout),
    stderr: toSink(process.stderr),
    environment: process.env,
    signal: controller.signal,
    acceptSignal: () => (isSignalAccepted = true),
    now: () => performance.now(),
  };
  const code = await runCli(args, version, io);
  for (const name of SIGNALS) process.off(name, onSignal);
  // Node.js reports a failed write only in the next turn of the event loop.
  await new Promise((resolve) => setImmediate(resolve));
  if (signalCode !== null && !isSignalAccepted) return signalCode;
  if (outputError === null) return code;
  if (outputError === 'EPIPE') return 0; // the reader, such as `head`, has closed the pipe
  io.stderr.write(`error: cannot write output: ${outputError}\n`);
  return 1;
}

function toSink(stream: NodeJS.WriteStream): TextSink {
  return {
    stream,
    isTerminal: stream.isTTY === true,
    get columns() {
      // 0 means unknown.
      return stream.columns || 80;
    },
    // Writing to a closed pipe would only repeat the error.
    write: (text) => (stream.writable ? void stream.write(text) : undefined),
  };
}
