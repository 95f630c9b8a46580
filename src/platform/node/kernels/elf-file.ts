/** Fields of 64-bit little-endian ELF, by byte offset. */
const FILE_HEADER = {
  machine: 18,
  programAt: 32,
  sectionAt: 40,
  programSize: 54,
  numPrograms: 56,
  sectionSize: 58,
  numSections: 60,
};
const PROGRAM_HEADER = { type: 0, offset: 8, address: 16, fileSize: 32 };
const LOADED = 1;
const DYNAMIC = 2;
const INTERPRETER = 3;
const NEEDED = 1;
const STRING_TABLE = 5;
const MACHINES: Readonly<Record<number, string>> = { 62: 'x64', 183: 'arm64', 40: 'arm', 3: 'ia32', 243: 'riscv64' };

interface Segment {
  readonly type: number;
  readonly offset: number;
  readonly address: number;
  readonly fileSize: number;
}

/** What an ELF file says of itself. */
export interface ElfFile {
  /** In Node's words; null: none of those we know. */
  readonly architecture: string | null;
  /** How many bytes the file must have. */
  readonly promisedBytes: number;
  /** The program that loads it (`/lib/ld-linux-x86-64.so.2`); null for a library. */
  readonly interpreter: string | null;
  /** Libraries it is linked against, as far as the bytes reach. */
  readonly needed: readonly string[];
}

/** Null where the bytes are no 64-bit little-endian ELF. Bytes may be the file's beginning; all fields but `needed` are in 4 KiB. */
export function parseElf(bytes: Uint8Array): ElfFile | null {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const isElf64 = bytes.length >= 64 && view.getUint32(0) === 0x7f454c46 && view.getUint16(4) === 0x0201;
  if (!isElf64) return null;
  const wide = (at: number): number => Number(view.getBigUint64(at, true));
  const short = (at: number): number => view.getUint16(at, true);
  const segments: Segment[] = [];
  for (let i = 0; i < short(FILE_HEADER.numPrograms); i++) {
    const at = wide(FILE_HEADER.programAt) + i * short(FILE_HEADER.programSize);
    if (at + PROGRAM_HEADER.fileSize + 8 > bytes.length) break;
    segments.push({
      type: view.getUint32(at + PROGRAM_HEADER.type, true),
      offset: wide(at + PROGRAM_HEADER.offset),
      address: wide(at + PROGRAM_HEADER.address),
      fileSize: wide(at + PROGRAM_HEADER.fileSize),
    });
  }
  const loaded = segments.filter(({ type }) => type === LOADED);
  const tableEnd = wide(FILE_HEADER.sectionAt) + short(FILE_HEADER.sectionSize) * short(FILE_HEADER.numSections);
  const interpreter = segments.find(({ type }) => type === INTERPRETER);
  return {
    architecture: MACHINES[short(FILE_HEADER.machine)] ?? null,
    promisedBytes: Math.max(tableEnd, ...loaded.map(({ offset, fileSize }) => offset + fileSize)),
    interpreter: interpreter === undefined ? null : readText(bytes, interpreter.offset),
    needed: readNeeded(bytes, segments),
  };
}

function readNeeded(bytes: Uint8Array, segments: readonly Segment[]): string[] {
  const dynamic = segments.find(({ type }) => type === DYNAMIC);
  if (dynamic === undefined || dynamic.offset + dynamic.fileSize > bytes.length) return [];
  const view = new DataView(bytes.buffer, bytes.byteOffset + dynamic.offset, dynamic.fileSize);
  const entries = Array.from({ length: Math.floor(dynamic.fileSize / 16) }, (_, i) => ({
    tag: Number(view.getBigUint64(i * 16, true)),
    value: Number(view.getBigUint64(i * 16 + 8, true)),
  }));
  const table = entries.find(({ tag }) => tag === STRING_TABLE)?.value;
  const home = segments.find(
    ({ type, address, fileSize }) =>
      type === LOADED && table !== undefined && table >= address && table < address + fileSize,
  );
  if (table === undefined || home === undefined) return [];
  const tableAt = table - home.address + home.offset;
  return entries.filter(({ tag }) => tag === NEEDED).map(({ value }) => readText(bytes, tableAt + value));
}

function readText(bytes: Uint8Array, at: number): string {
  const end = bytes.indexOf(0, at);
  return new TextDecoder().decode(bytes.subarray(at, end < 0 ? at : end));
}
