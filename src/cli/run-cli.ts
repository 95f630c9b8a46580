import { CommanderError } from 'commander';
import { RuvLLMError } from '../core/errors.ts';
import { COMMANDS } from './commands.ts';
import { loadConfig, nameOrigin, withConfig } from './config/load-config.ts';
import { describeCommand } from './help-text.ts';
import type { CliIo } from './io.ts';
import { createOutput } from './output.ts';
import { parseCommand } from './program.ts';
import { exitCodeOf, reportError } from './report-error.ts';
import { toSafeJson } from './safe-text.ts';
import { usageError } from './usage-error.ts';

/** Parses and runs one command line; returns its exit code and never throws. */
export async function runCli(typed: readonly string[], version: string, io: CliIo): Promise<number> {
  const args = typed[0] === 'help' ? [...typed.slice(1), '--help'] : typed;
  const end = args.indexOf('--');
  // Looked for by hand: an unknown option must be reported as JSON although nothing was parsed.
  const isJson = (end < 0 ? args : args.slice(0, end)).includes('--json');
  const output = createOutput(io, isJson);
  let settled = io;
  const commandName = COMMANDS.find(({ name }) => name === args[0])?.name ?? null;
  try {
    const parsed = await parse(args, version, io, isJson);
    if (parsed === null) return 0;
    const { '--config': named, ...values } = parsed.values;
    const isTolerant = parsed.entry.isTolerant === true;
    const config = await loadConfig(named as string | undefined, io, { isTolerant });
    settled = withConfig(io, config);
    const run = await parsed.entry.load();
    await run({ io: settled, output, version, args: parsed.args, values, config });
    return 0;
  } catch (error) {
    const reason = stopReason(error, io.signal);
    if (reason === null || reason.startsWith('SIG')) {
      const shown = reason === null ? await withSuggestions(nameOrigin(error, settled)) : stoppedBy(reason);
      reportError(shown, { io, isJson, commandName });
    }
    return exitCodeOf(error);
  }
}

async function parse(args: readonly string[], version: string, io: CliIo, isJson: boolean) {
  const help = { out: '', err: '' };
  try {
    return await parseCommand(args, version, {
      columns: io.stdout.isTerminal ? Math.max(40, io.stdout.columns || 80) : 80,
      out: (text) => (help.out += text),
      err: (text) => (help.err += text),
    });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode === 0) {
      // --help, --version
      io.stdout.write(isJson ? `${toSafeJson(await helpDocument(args, version))}\n` : help.out);
      return null;
    }
    if (error.code === 'commander.help') {
      if (!isJson) io.stderr.write(`${help.err}\n`);
      throw usageError('no command was given');
    }
    throw usageError(readable(error.message));
  }
}

/** Commander puts what may have been meant on a line of its own. */
function readable(message: string): string {
  return message
    .replace(/^error: /, '')
    .replace(/\n\(Did you mean (?:one of )?([^?]*)\?\)$/, (_, names: string) => ` (did you mean ${names}?)`);
}

async function helpDocument(args: readonly string[], version: string): Promise<object> {
  const entry = COMMANDS.find(({ name }) => name === args[0]);
  if (entry !== undefined) return await describeCommand(entry);
  return { version, commands: COMMANDS.map(({ name, args, description }) => ({ name, args, description })) };
}

/** An error about a model tells which models have such a name. */
async function withSuggestions(error: unknown): Promise<unknown> {
  if (!(error instanceof RuvLLMError) || error.code !== 'not_found') return error;
  const { suggestModels } = await import('./suggest-model.ts');
  const suggestions = await suggestModels(error);
  if (suggestions.length === 0) return error;
  return new RuvLLMError(error.code, error.message, { cause: error, data: { ...error.data, suggestions } });
}

/** What made the process stop the command; null when it failed by itself. */
function stopReason(error: unknown, signal: AbortSignal): string | null {
  return signal.aborted && error instanceof RuvLLMError && error.code === 'aborted' ? String(signal.reason) : null;
}

function stoppedBy(reason: string): RuvLLMError {
  return new RuvLLMError('aborted', `stopped by ${reason}`, { data: { signal: reason } });
}
