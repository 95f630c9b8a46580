import { CommanderError } from 'commander';
import { RuvLLMError } from '../core/errors.ts';
import { COMMANDS } from './commands.ts';
import { loadConfig, nameOrigin, withConfig } from './config/load-config.ts';
import { describeCommand } from './help-text.ts';
import type { CliIo } from './io.ts';
import { createOutput } from './output.ts';
import { didYouMean } from '../core/nearest.ts';
import { parseCommand } from './program.ts';
import { exitCodeOf, reportError } from './report-error.ts';
import { toSafeJson } from './safe-text.ts';
import { usageError } from './usage-error.ts';

/** Commands that run despite an invalid settings file, to help diagnose it. */
const TOLERANT: ReadonlySet<string> = new Set(['config', 'completion', 'doctor']);

/** Second names of commands, as other tools have them. */
const ALIASES: Readonly<Record<string, string>> = { ls: 'list' };

function normalize([first, ...rest]: readonly string[]): readonly string[] {
  if (first === undefined) return [];
  if (first === 'help') return [...rest.map((word, index) => (index === 0 ? (ALIASES[word] ?? word) : word)), '--help'];
  return [Object.hasOwn(ALIASES, first) ? ALIASES[first]! : first, ...rest];
}

/** Parses and runs one command line; returns its exit code and never throws. */
export async function runCli(argv: readonly string[], version: string, io: CliIo): Promise<number> {
  const args = normalize(argv);
  const end = args.indexOf('--');
  // Not left to the parser: its own errors must be JSON, too.
  const isJson = (end < 0 ? args : args.slice(0, end)).includes('--json');
  const output = createOutput(io, isJson);
  let configuredIo = io;
  const commandName = COMMANDS.find(({ name }) => name === args[0])?.name ?? null;
  try {
    const parsed = await parse(args, version, io, isJson);
    if (parsed === null) return 0;
    const { '--config': configPath, ...values } = parsed.values;
    const isTolerant = TOLERANT.has(parsed.entry.name);
    const config = await loadConfig(configPath as string | undefined, io, { isTolerant });
    configuredIo = withConfig(io, config);
    const run = await parsed.entry.load();
    await run({ io: configuredIo, output, version, args: parsed.args, values, config, commands: COMMANDS });
    return 0;
  } catch (error) {
    const reason = stopReason(error, io.signal);
    if (reason === null || reason.startsWith('SIG')) {
      const reported = reason === null ? await withSuggestions(nameOrigin(error, configuredIo)) : stoppedBy(reason);
      reportError(reported, { io, isJson, commandName });
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
      const name = args[0]!;
      const names = COMMANDS.map((command) => command.name);
      if (!name.startsWith('-') && !names.includes(name)) {
        throw usageError(`unknown command '${name}'${didYouMean(name, names)}`);
      }
      io.stdout.write(isJson ? `${toSafeJson(await helpDocument(args, version))}\n` : help.out);
      return null;
    }
    if (error.code === 'commander.help') {
      if (!isJson) io.stderr.write(`${help.err}\n`);
      throw usageError('no command given');
    }
    throw usageError(toOneLine(error.message));
  }
}

/** Commander puts its suggestion on a second line. */
function toOneLine(message: string): string {
  return message
    .replace(/^error: /, '')
    .replace(/\n\(Did you mean (?:one of )?([^?]*)\?\)$/, (_, names: string) => ` (did you mean ${names}?)`);
}

async function helpDocument(args: readonly string[], version: string): Promise<object> {
  const entry = COMMANDS.find(({ name }) => name === args[0]);
  if (entry !== undefined) return await describeCommand(entry);
  return { version, commands: COMMANDS.map(({ name, args, description }) => ({ name, args, description })) };
}

/** Adds models with similar names to an error about a missing model. */
async function withSuggestions(error: unknown): Promise<unknown> {
  if (!(error instanceof RuvLLMError) || error.code !== 'not_found') return error;
  const { suggestModels } = await import('./suggest-model.ts');
  const suggestions = await suggestModels(error);
  if (suggestions.length === 0) return error;
  return new RuvLLMError(error.code, error.message, { cause: error, data: { ...error.data, suggestions } });
}

/** Why the process aborted the command; null if the command failed on its own. */
function stopReason(error: unknown, signal: AbortSignal): string | null {
  return signal.aborted && error instanceof RuvLLMError && error.code === 'aborted' ? String(signal.reason) : null;
}

function stoppedBy(reason: string): RuvLLMError {
  return new RuvLLMError('aborted', `stopped by ${reason}`, { data: { signal: reason } });
}
