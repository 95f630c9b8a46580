import { tmpdir } from 'node:os';
import { PassThrough } from 'node:stream';
import type { CliIo } from '../../src/cli/io.ts';

export interface FakeIo extends CliIo {
  readonly stdin: PassThrough & { isTTY: boolean };
  /** The output so far. */
  readonly written: { stdout: string; stderr: string };
  readonly controller: AbortController;
  nowMs: number;
}

/** Streams in memory, and a clock that stands still until it is set. */
export function createFakeIo({
  isTerminal = false,
  environment = {},
  columns = 80,
  folder = tmpdir(),
}: { isTerminal?: boolean; columns?: number; folder?: string; environment?: Record<string, string> } = {}): FakeIo {
  const written = { stdout: '', stderr: '' };
  const controller = new AbortController();
  const sink = (name: 'stdout' | 'stderr') => {
    const stream = new PassThrough();
    stream.setEncoding('utf8').on('data', (text: string) => (written[name] += text));
    return { stream, isTerminal, columns, write: (text: string) => void (written[name] += text) };
  };
  const io: FakeIo = {
    stdin: Object.assign(new PassThrough(), { isTTY: isTerminal }),
    stdout: sink('stdout'),
    stderr: sink('stderr'),
    environment,
    folder,
    signal: controller.signal,
    now: () => io.nowMs,
    written,
    controller,
    nowMs: 0,
  };
  return io;
}
