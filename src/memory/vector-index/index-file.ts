import { RuvLLMError } from '../../core/errors.ts';
import type { BlockFile, BlockRead } from './block-file.ts';
import { COLUMNS, type ColumnName } from './columns.ts';
import { PAGE_BYTES } from './dirty-pages.ts';

/**
 * A saved index: two header blocks that take turns, and pages of columns in other blocks. A header has the block and generation
 * of each page. Pages of the newest valid header are never overwritten, so they survive any crash.
 */
export interface IndexHeader extends IndexShape {
  readonly generation: number;
  readonly seq: number;
  /** Slots ever used. */
  readonly end: number;
  readonly upperEnd: number;
  readonly entry: number;
  readonly topLevel: number;
  /** Numbers in the page `extra`: count of shared-slot numbers, those numbers, and slots not yet linked. */
  readonly numExtra: number;
}

/** Must match when an index is opened. */
interface IndexShape {
  readonly dim: number;
  readonly metric: string;
  readonly storage: string;
  readonly keepsExact: boolean;
  readonly m: number;
  readonly hasGraph: boolean;
}

/** `extra`: data that does not belong to one slot. */
const PAGED = [...COLUMNS, 'extra'] as const;
export type PagedName = ColumnName | 'extra';

interface PageEntry {
  readonly block: number;
  readonly generation: number;
}

export interface SavedIndex {
  readonly header: IndexHeader;
  readonly pages: ReadonlyMap<PagedName, readonly PageEntry[]>;
}

const FORMAT = 'ruvllm-vectors';
const VERSION = 1;
const HEADER_SLOTS = 2;
/** Size of the description before the page table. */
const MAX_META_BYTES = 4096;

const headerName = (slot: number): string => `header ${slot}`;
const pageName = (column: PagedName, page: number, generation: number): string => `${column} ${page} of ${generation}`;

function corrupt(what: string, data: Record<string, number | string> = {}): never {
  throw new RuvLLMError('hash_mismatch', `the saved vector index is damaged: ${what}; it must be rebuilt`, { data });
}

/** Layout: u32 length of the description, the description as JSON, and from byte 4096 [block, generation] of each page. */
function encodeHeader(header: IndexHeader | null, pages: ReadonlyMap<PagedName, readonly PageEntry[]>): Uint8Array {
  const counts = PAGED.map((name) => pages.get(name)?.length ?? 0);
  const meta = new TextEncoder().encode(JSON.stringify({ format: FORMAT, version: VERSION, header, counts }));
  const entries = PAGED.flatMap((name) => pages.get(name) ?? []);
  const bytes = new Uint8Array(MAX_META_BYTES + entries.length * 8);
  const words = new Uint32Array(bytes.buffer);
  words[0] = meta.length;
  bytes.set(meta, 4);
  entries.forEach(({ block, generation }, i) => words.set([block, generation], MAX_META_BYTES / 4 + 2 * i));
  return bytes;
}

interface HeaderMeta {
  readonly format: string;
  readonly version: number;
  readonly header: IndexHeader | null;
  readonly counts: readonly number[];
}

const COUNTS = ['generation', 'seq', 'end', 'upperEnd', 'numExtra', 'dim', 'm'] as const;
const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;

/** A sealed block has the right bytes, but another release, or a bug of one, may have written them. */
function isHeaderMeta({ header, counts }: Partial<HeaderMeta>): boolean {
  if (!Array.isArray(counts) || counts.length !== PAGED.length || !counts.every(isCount)) return false;
  if (header === null) return true;
  if (typeof header !== 'object') return false;
  return (
    COUNTS.every((name) => isCount(header[name])) &&
    [header.entry, header.topLevel].every((value) => Number.isSafeInteger(value) && value >= -1) &&
    typeof header.hasGraph === 'boolean'
  );
}

/** Undefined: damaged. Null: no index yet. */
function decodeHeader(file: BlockFile, slot: number): SavedIndex | null | undefined {
  const copy = new Uint8Array(PAGE_BYTES);
  if (!file.read(slot, headerName(slot), copy)) return undefined;
  const words = new Uint32Array(copy.buffer);
  const length = words[0]!;
  if (length > MAX_META_BYTES - 4) return undefined;
  let meta: HeaderMeta | null;
  try {
    meta = JSON.parse(new TextDecoder().decode(copy.subarray(4, 4 + length))) as HeaderMeta | null;
  } catch {
    return undefined;
  }
  if (meta?.format !== FORMAT) return undefined;
  if (meta.version !== VERSION) {
    throw new RuvLLMError('unsupported', `the vector index has version ${meta.version}, this release reads ${VERSION}`);
  }
  if (!isHeaderMeta(meta)) return undefined;
  if (meta.header === null) return null;
  const numEntries = meta.counts.reduce((sum, count) => sum + count, 0);
  if (MAX_META_BYTES + numEntries * 8 > copy.length) return undefined;
  const pages = new Map<PagedName, PageEntry[]>();
  let at = MAX_META_BYTES / 4;
  PAGED.forEach((name, i) => {
    const list: PageEntry[] = [];
    for (let page = 0; page < meta.counts[i]!; page++, at += 2) {
      list.push({ block: words[at]!, generation: words[at + 1]! });
    }
    pages.set(name, list);
  });
  return { header: meta.header, pages };
}

/** The newest index in a file; null: none. Throws `hash_mismatch` when both headers are damaged. */
export function readHeader(file: BlockFile): SavedIndex | null {
  checkBlockBytes(file);
  if (file.numBlocks < HEADER_SLOTS) return null;
  const found = [0, 1].map((slot) => decodeHeader(file, slot));
  const valid = found.filter((saved) => saved !== undefined);
  if (valid.length === 0) corrupt('neither of its two headers can be read', { numBlocks: file.numBlocks });
  return valid.reduce((a, b) => ((b?.header.generation ?? 0) > (a?.header.generation ?? 0) ? b : a));
}

async function readAll<R extends BlockRead>(file: BlockFile, wanted: readonly R[]): Promise<R | null> {
  if (file.readMany !== undefined) return (await file.readMany(wanted)) as R | null;
  return wanted.find(({ block, name, into }) => !file.read(block, name, into)) ?? null;
}

interface PageRead extends BlockRead {
  readonly column: PagedName;
  readonly page: number;
}

/** Fills the columns; throws `hash_mismatch` for a damaged page. */
export async function readPages(
  file: BlockFile,
  saved: SavedIndex,
  columns: readonly (readonly [PagedName, Uint8Array])[],
): Promise<void> {
  const wanted = columns.flatMap(([column, bytes]) =>
    saved.pages.get(column)!.map(({ block, generation }, page): PageRead => ({
      block,
      name: pageName(column, page, generation),
      into: bytes.subarray(page * PAGE_BYTES, (page + 1) * PAGE_BYTES),
      column,
      page,
    })),
  );
  const beyond = wanted.find(({ block }) => block >= file.numBlocks);
  const damaged = beyond ?? (await readAll(file, wanted));
  if (damaged === null) return;
  const { column, page, block } = damaged;
  corrupt(`page ${page} of ${column} in block ${block}`, { column, page, block });
}

function checkBlockBytes({ blockBytes }: BlockFile): void {
  if (blockBytes === PAGE_BYTES) return;
  throw new RuvLLMError('invalid_option', `blocks have ${blockBytes} bytes, a vector index requires ${PAGE_BYTES}`);
}

export interface PagesToWrite {
  readonly numPages: number;
  /** Null: unchanged. */
  bytesOf(page: number): Uint8Array | null;
}

/** Writes the next generation: changed pages into free blocks, then the header over the older one. */
export function writeGeneration(
  file: BlockFile,
  last: SavedIndex | null,
  header: Omit<IndexHeader, 'generation'>,
  columns: (name: PagedName) => PagesToWrite,
): { saved: SavedIndex; blocksWritten: number } {
  checkBlockBytes(file);
  for (let slot = file.numBlocks; slot < HEADER_SLOTS; slot++) {
    file.write(slot, headerName(slot), encodeHeader(null, new Map()));
  }
  const generation = (last?.header.generation ?? 0) + 1;
  const inUse = new Set<number>();
  for (const list of last?.pages.values() ?? []) for (const { block } of list) inUse.add(block);
  let candidate = HEADER_SLOTS;
  const nextFree = (): number => {
    while (inUse.has(candidate)) candidate++;
    return candidate++;
  };
  let blocksWritten = 0;
  const pages = new Map<PagedName, PageEntry[]>();
  for (const name of PAGED) {
    const { numPages, bytesOf } = columns(name);
    const list: PageEntry[] = [];
    for (let page = 0; page < numPages; page++) {
      const bytes = bytesOf(page);
      const kept = last?.pages.get(name)?.[page];
      if (bytes === null && kept !== undefined) {
        list.push(kept);
        continue;
      }
      const block = nextFree();
      file.write(block, pageName(name, page, generation), bytes!);
      list.push({ block, generation });
      blocksWritten++;
    }
    pages.set(name, list);
  }
  file.flush();
  const saved: SavedIndex = { header: { ...header, generation }, pages };
  const slot = generation % HEADER_SLOTS;
  file.write(slot, headerName(slot), encodeHeader(saved.header, pages));
  file.flush();
  return { saved, blocksWritten: blocksWritten + 1 };
}
