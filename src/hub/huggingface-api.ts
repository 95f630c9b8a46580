import { RuvLLMError } from '../core/errors.ts';
import { isCommit } from './cache-layout.ts';
import type { ExpectedHash } from './content-hash.ts';
import { httpGet, readJson, toStatusError } from './http.ts';
import type { PullContext } from './pull-context.ts';
import { withRetries } from './retry.ts';

/** A file in the hub's list of a repository. */
export interface HubFile {
  readonly path: string;
  readonly sizeBytes: number;
  readonly hash: ExpectedHash;
}

const MAX_REPLY_BYTES = 32 << 20;
const MAX_PAGES = 50;
const MAX_FILES = 50_000;
/** 16 TiB: above every model, below the limit of exact sums. */
const MAX_FILE_BYTES = 2 ** 44;

function escapePath(path: string): string {
  return path.split('/').map(encodeURIComponent).join('/');
}

async function getJson(context: PullContext, url: string, what: string): Promise<{ body: unknown; headers: Headers }> {
  return await withRetries(context, what, async () => {
    const reply = await httpGet(context, url, { accept: 'application/json' });
    if (reply.status !== 200) throw await toStatusError(reply, what);
    return { body: await readJson(reply, MAX_REPLY_BYTES, what), headers: reply.headers };
  });
}

/** The current commit of a branch or tag; later requests use it, so that all see one state. */
export async function fetchCommit(context: PullContext, repo: string): Promise<string> {
  const { endpoint, revision } = context.options;
  const url = `${endpoint}/api/models/${repo}/revision/${encodeURIComponent(revision)}`;
  const { body } = await getJson(context, url, repo);
  const commit = (body as { sha?: unknown } | null)?.sha;
  if (typeof commit !== 'string' || !isCommit(commit)) {
    throw new RuvLLMError('download_failed', `${repo}: the hub returned no commit id for ${revision}`);
  }
  return commit;
}

function toHubFile(entry: unknown): HubFile | null {
  const { type, path, size, oid, lfs } = (entry ?? {}) as Record<string, unknown>;
  if (type !== 'file' || typeof path !== 'string') return null;
  const large = (lfs ?? null) as { oid?: unknown; size?: unknown } | null;
  const sizeBytes = large === null ? size : large.size;
  if (!Number.isSafeInteger(sizeBytes) || (sizeBytes as number) < 0 || (sizeBytes as number) > MAX_FILE_BYTES)
    return null;
  // The hash becomes a file name: only plain hex is valid.
  if (large !== null) {
    if (typeof large.oid !== 'string' || !/^[0-9a-f]{64}$/.test(large.oid)) return null;
    return { path, sizeBytes: sizeBytes as number, hash: { algorithm: 'sha256', hex: large.oid } };
  }
  if (typeof oid !== 'string' || !/^[0-9a-f]{40}$/.test(oid)) return null;
  return { path, sizeBytes: sizeBytes as number, hash: { algorithm: 'git-sha1', hex: oid } };
}

/** All files of a repository at a commit, without entries that lack a usable size or hash. */
export async function fetchFiles(context: PullContext, repo: string, commit: string): Promise<HubFile[]> {
  const files: HubFile[] = [];
  let url: string | null = `${context.options.endpoint}/api/models/${repo}/tree/${commit}?recursive=true`;
  for (let page = 0; url !== null && page < MAX_PAGES; page++) {
    const { body, headers } = await getJson(context, url, repo);
    if (!Array.isArray(body)) throw new RuvLLMError('download_failed', `${repo}: the hub's file list is not a list`);
    for (const entry of body as unknown[]) {
      const file = toHubFile(entry);
      if (file !== null) files.push(file);
    }
    if (files.length > MAX_FILES) throw new RuvLLMError('download_failed', `${repo}: more than ${MAX_FILES} files`);
    const next = /<([^<>]+)>;\s*rel="next"/.exec(headers.get('link') ?? '')?.[1];
    url = next !== undefined && URL.canParse(next, url) ? new URL(next, url).href : null;
  }
  return files;
}

export function fileUrl(context: PullContext, repo: string, commit: string, path: string): string {
  return `${context.options.endpoint}/${repo}/resolve/${commit}/${escapePath(path)}`;
}
