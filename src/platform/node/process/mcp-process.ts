import { spawn, type ChildProcess } from 'node:child_process';
import { messageOf, RuvLLMError } from '../../../core/errors.ts';
import type { JsonRpcMessage } from '../../../mcp/json-rpc.ts';
import { createLineReader } from '../../../mcp/line-reader.ts';
import type { McpTransport, TransportEvents } from '../../../mcp/transport.ts';
import { errnoOf } from '../files/file-errors.ts';

export interface McpProcessOptions {
  /** The name of the server in errors. */
  readonly server: string;
  readonly command: string;
  readonly args: readonly string[];
  /** Added to the few variables that every server gets. */
  readonly env: Readonly<Record<string, string>>;
  /** Null: the current folder. */
  readonly folder: string | null;
  /** Milliseconds that a server has to exit by itself, and again after SIGTERM. Default 2000. */
  readonly exitMs?: number;
}

/** Not the whole environment: it holds keys that are no business of a tool's process. */
const INHERITED = (
  'PATH HOME USER LOGNAME SHELL TERM LANG LC_ALL TZ TMPDIR ' +
  'APPDATA HOMEDRIVE HOMEPATH LOCALAPPDATA PATHEXT PROCESSOR_ARCHITECTURE PROGRAMFILES SYSTEMDRIVE SYSTEMROOT TEMP USERNAME USERPROFILE'
).split(' ');

const EXIT_MS = 2000;
/** The end of the error output that an error keeps. */
const MAX_STDERR_CHARS = 1000;
/** Bytes that may wait in the pipe to a process that does not read. */
const MAX_WAITING_BYTES = 16 << 20;

const isWindows = process.platform === 'win32';

/** An MCP server as a process of this machine, one JSON message per line on its standard streams. */
export function createMcpProcess(options: McpProcessOptions): McpTransport {
  const { server, command, args, env, folder, exitMs = EXIT_MS } = options;
  const lines = createLineReader();
  let child: ChildProcess | null = null;
  let exited: Promise<void> = Promise.resolve();
  let hasExited = false;
  let errorOutput = '';

  /** The error output is for the operator, not for the message: models and callers read that, and it may hold secrets. */
  const failure = (what: string, more: object = {}, cause?: unknown): RuvLLMError => {
    const stderr = errorOutput.replaceAll(/[^\x20-\x7e]+/g, ' ').trim();
    const data = { server, ...(stderr === '' ? {} : { stderr }), ...more };
    return new RuvLLMError('tool_failed', `MCP server "${server}": ${what}`, { cause, data });
  };

  /** The whole group: `npx` and shells start the server as a child of their own. */
  function kill(signal: 'SIGTERM' | 'SIGKILL'): void {
    if (child?.pid === undefined) return;
    try {
      if (isWindows) child.kill(signal);
      else process.kill(-child.pid, signal);
    } catch {
      // The group is gone.
    }
  }

  function start(events: TransportEvents): Promise<void> {
    const inherited = INHERITED.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]]));
    return new Promise((resolve, reject) => {
      const started = spawn(command, args, {
        env: { ...(Object.fromEntries(inherited) as Record<string, string>), ...env },
        ...(folder === null ? {} : { cwd: folder }),
        stdio: ['pipe', 'pipe', 'pipe'],
        shell: false,
        windowsHide: true,
        detached: !isWindows, // a group of its own
      });
      child = started;
      exited = new Promise((done) => {
        started.on('close', (code, signal) => {
          hasExited = true;
          events.onClose(failure(signal === null ? `it exited with ${code}` : `it was ended by ${signal}`));
          done();
        });
      });
      started.on('spawn', resolve);
      started.on('error', (error) => {
        const problem =
          errnoOf(error) === 'ENOENT'
            ? failure(`cannot start ${JSON.stringify(command)}: not found`, {}, error)
            : failure(error.message, {}, error);
        events.onClose(problem);
        reject(problem);
      });
      started.stdin.on('error', () => {}); // a server that exits breaks the pipe; `close` reports it
      started.stderr.on('data', (chunk: Buffer) => {
        errorOutput = (errorOutput + chunk.toString('utf8')).slice(-MAX_STDERR_CHARS);
      });
      started.stdout.on('data', (chunk: Buffer) => {
        try {
          for (const message of lines.push(chunk)) {
            if (message.kind === 'value') events.onMessage(message.value, message.numBytes);
            else events.onExcess(message.id, message.what, message.limit);
          }
        } catch (error) {
          started.stdout.destroy(); // no byte more is read
          events.onClose(failure(messageOf(error), {}, error));
          kill('SIGKILL');
        }
      });
    });
  }

  return {
    open: start,
    send(message: JsonRpcMessage) {
      const { stdin } = child!;
      if (hasExited || stdin === null || stdin.destroyed || stdin.writableEnded) {
        return Promise.reject(failure('it is gone', { isUndelivered: true }));
      }
      if (stdin.writableLength > MAX_WAITING_BYTES) return Promise.reject(failure('it does not read its input'));
      // Not with answers to its own requests: it could print for ever.
      if ('method' in message) lines.refill();
      stdin.write(`${JSON.stringify(message)}\n`);
      return Promise.resolve();
    },
    async close() {
      if (child === null || child.pid === undefined) return;
      child.stdin?.end();
      const within = async (): Promise<void> => {
        let timer: NodeJS.Timeout | undefined;
        await Promise.race([exited, new Promise((resolve) => (timer = setTimeout(resolve, exitMs)))]);
        clearTimeout(timer);
      };
      await within();
      if (hasExited) return kill('SIGKILL'); // children that outlive it
      kill('SIGTERM');
      await within();
      kill('SIGKILL');
      await exited;
    },
  };
}
