import { CommanderError } from 'commander';
import { RuvLLMError } from '../core/errors.ts';
import { COMMANDS } from './commands.ts';
import type { CliIo } from './io.ts';
import { createOutput } from './output.ts';
import { parseCommand } from './program.ts';
import { exitCodeOf, reportError } from './report-error.ts';
import { usageError } from './usage-error.ts';

/** Parses and runs one command line; returns its exit code and never throws. */
export async function runCli(args: readonly string[], version: string, io: CliIo): Promise<number> {
  const end = args.indexOf('--');
  // Looked for by hand: an unknown option must be reported as JSON although nothing was parsed.
  const isJson = (end < 0 ? args : args.slice(0, end)).includes('--json');
  const output = createOutput(io, isJson);
  const commandName = COMMANDS.find(({ name }) => name === args[0])?.name ?? null;
  try {
    const parsed = await parse(args, version, io, isJson);
    if (parsed === null) return 0;
    const run = await parsed.entry.load();
    await run({ io, output, version, args: parsed.args, values: parsed.values });
    return 0;
  } catch (error) {
    const reason = stopReason(error, io.signal);
    if (reason === null || reason.startsWith('SIG')) {
      reportError(reason === null ? error : stoppedBy(reason), { io, isJson, commandName });
    }
    return exitCodeOf(error);
  }
}

async function parse(args: readonly string[], version: string, io: CliIo, isJson: boolean) {
  let help = '';
  try {
    return await parseCommand(args, version, {
      out: (text) => io.stdout.write(text),
      err: (text) => (help += text),
    });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode === 0) return null; // --help, --version
    if (error.code === 'commander.help') {
      if (!isJson) io.stderr.write(`${help}\n`);
      throw usageError('no command was given');
    }
    throw usageError(error.message.replace(/^error: /, ''));
  }
}

/** What made the process stop the command; null when it failed by itself. */
function stopReason(error: unknown, signal: AbortSignal): string | null {
  return signal.aborted && error instanceof RuvLLMError && error.code === 'aborted' ? String(signal.reason) : null;
}

function stoppedBy(reason: string): RuvLLMError {
  return new RuvLLMError('aborted', `stopped by ${reason}`, { data: { signal: reason } });
}
