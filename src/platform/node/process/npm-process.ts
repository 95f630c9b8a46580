import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { RuvLLMError } from '../../../core/errors.ts';
import type { NpmOutcome } from '../../../hub/platform.ts';
import { errnoOf } from '../files/file-errors.ts';

/** npm's JSON replies are a few kB; a file list of a large package stays below this. */
const MAX_OUTPUT_BYTES = 16 << 20;

/**
 * On Windows npm is a .cmd, which Node refuses to start without a shell (arguments could break out of the quoting),
 * so npm's own script is run with this Node.
 */
function npmCommand(): { command: string; prefix: string[] } {
  if (process.platform !== 'win32') return { command: 'npm', prefix: [] };
  const folders = [dirname(process.execPath), ...(process.env['PATH'] ?? process.env['Path'] ?? '').split(delimiter)];
  for (const folder of folders) {
    const script = join(folder, 'node_modules', 'npm', 'bin', 'npm-cli.js');
    if (folder !== '' && existsSync(script)) return { command: process.execPath, prefix: [script] };
  }
  throw new RuvLLMError('not_found', 'npm was not found on the PATH');
}

/** Runs the user's npm with these arguments and collects what it prints. */
export function runNpmProcess(
  args: readonly string[],
  options: { folder: string; signal: AbortSignal | null },
): Promise<NpmOutcome> {
  return new Promise((resolve, reject) => {
    const aborted = (): RuvLLMError => new RuvLLMError('aborted', `npm ${args[0] ?? ''} was cancelled`);
    if (options.signal?.aborted === true) {
      reject(aborted());
      return;
    }
    const { command, prefix } = npmCommand();
    const child = spawn(command, [...prefix, ...args], {
      cwd: options.folder,
      shell: false,
      windowsHide: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const stop = (): void => void child.kill();
    options.signal?.addEventListener('abort', stop, { once: true });
    const texts = { stdout: '', stderr: '' };
    let numBytes = 0;
    let failure: RuvLLMError | null = null;
    for (const name of ['stdout', 'stderr'] as const) {
      child[name].setEncoding('utf8');
      child[name].on('data', (text: string) => {
        numBytes += text.length;
        if (numBytes <= MAX_OUTPUT_BYTES) {
          texts[name] += text;
          return;
        }
        failure = new RuvLLMError('download_failed', `npm ${args[0] ?? ''} printed over ${MAX_OUTPUT_BYTES} bytes`);
        stop();
      });
    }
    child.on('error', (error) => {
      options.signal?.removeEventListener('abort', stop);
      reject(
        errnoOf(error) === 'ENOENT'
          ? new RuvLLMError('not_found', 'npm was not found on the PATH', { cause: error })
          : new RuvLLMError('download_failed', `cannot start npm: ${error.message}`, { cause: error }),
      );
    });
    child.on('close', (code) => {
      options.signal?.removeEventListener('abort', stop);
      if (options.signal?.aborted === true) reject(aborted());
      else if (failure !== null) reject(failure);
      else resolve({ exitCode: code ?? -1, ...texts });
    });
  });
}
