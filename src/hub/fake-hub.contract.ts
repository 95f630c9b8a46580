import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readlinkSync, realpathSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { createNodeHubPlatform } from '../platform/node/process/hub-platform.ts';
import type { HubPlatform } from './platform.ts';

export const COMMIT = 'a'.repeat(40);

export interface FakeFile {
  path: string;
  bytes: Uint8Array;
  /** The hash the hub claims; default: the true one. */
  sha256?: string;
  sizeBytes?: number;
  /** Listed without LFS data, by git object id. */
  isSmall?: boolean;
}

/** Answers the nth (from 0) request for a file's bytes; false: send the normal reply. */
export type FileReply = (
  request: IncomingMessage,
  response: ServerResponse,
  file: FakeFile,
  count: number,
) => boolean | void;

export interface FakeHub {
  readonly endpoint: string;
  readonly requests: { url: string; headers: IncomingMessage['headers'] }[];
  /** Named as the next page of the list of files; null: there is none. */
  nextPage: string | null;
  close(): Promise<void>;
}

export function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** The normal reply, including ranges. */
export function sendFile(request: IncomingMessage, response: ServerResponse, bytes: Uint8Array): void {
  const range = /^bytes=(\d+)-$/.exec(request.headers.range ?? '');
  const start = Number(range?.[1] ?? 0);
  const headers: Record<string, string | number> = { 'content-length': bytes.length - start };
  if (range !== null) headers['content-range'] = `bytes ${start}-${bytes.length - 1}/${bytes.length}`;
  response.writeHead(range === null ? 200 : 206, headers).end(bytes.subarray(start));
}

function toEntry(file: FakeFile): object {
  const size = file.sizeBytes ?? file.bytes.length;
  const git = createHash('sha1').update(`blob ${file.bytes.length}\0`).update(file.bytes).digest('hex');
  if (file.isSmall === true) return { type: 'file', path: file.path, size, oid: git };
  const oid = file.sha256 ?? sha256(file.bytes);
  return { type: 'file', path: file.path, size, oid: git, lfs: { oid, size, pointerSize: 135 } };
}

/** A hub on 127.0.0.1 that serves one repository. */
export async function startFakeHub(
  files: FakeFile[],
  reply: FileReply = () => false,
  repo = 'owner/repo',
): Promise<FakeHub> {
  const requests: FakeHub['requests'] = [];
  let count = 0;
  const server = createServer((request, response) => {
    const url = request.url ?? '';
    requests.push({ url, headers: request.headers });
    const json = (value: unknown): void => void response.end(JSON.stringify(value));
    if (url === `/api/models/${repo}/revision/main`) return json({ sha: COMMIT });
    if (url === `/api/models/${repo}/tree/${COMMIT}?recursive=true`) {
      if (hub.nextPage !== null) response.setHeader('link', `<${hub.nextPage}>; rel="next"`);
      return json(files.map(toEntry));
    }
    const path = decodeURIComponent(url.replace(`/${repo}/resolve/${COMMIT}/`, ''));
    const file = files.find((candidate) => candidate.path === path);
    if (file === undefined) return void response.writeHead(404).end('no such thing');
    if (reply(request, response, file, count++) !== true) sendFile(request, response, file.bytes);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const hub: FakeHub = {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    nextPage: null,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return hub;
}

/** Node's platform with a new cache folder, an empty environment and no real waiting; removed after the test. */
export function createTestPlatform(changes: Partial<HubPlatform> = {}): HubPlatform & { waits: number[] } {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'ruvllm-hub-')));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const waits: number[] = [];
  const node = createNodeHubPlatform();
  return {
    ...node,
    cacheRoot: join(root, 'cache'),
    tokenPath: join(root, 'token'),
    environment: {},
    async sleep(delayMs, signal) {
      waits.push(delayMs);
      await node.sleep(1, signal);
    },
    ...changes,
    waits,
  };
}

/** All entries below a folder: files as `path`, links as `path -> target`, folders as `path/`; without lock folders. */
export function listing(root: string): string[] {
  const lines: string[] = [];
  const visit = (folder: string, prefix: string): void => {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      const path = prefix + entry.name;
      if (entry.isDirectory()) {
        lines.push(`${path}/`);
        visit(join(folder, entry.name), `${path}/`);
      } else lines.push(entry.isSymbolicLink() ? `${path} -> ${readlinkSync(join(folder, entry.name))}` : path);
    }
  };
  try {
    visit(root, '');
  } catch {
    return ['(nothing)'];
  }
  return lines.filter((line) => !/^\.locks\/(?:[^/]+\/)?$/.test(line)).sort();
}
