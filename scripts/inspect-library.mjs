// Reads a linked library's format, processor, required libraries and exported names: all that can be checked of a file for another
// system without running it.

const ENTRY = 'napi_register_module_v1';
const text = (bytes, at) => bytes.toString('latin1', at, bytes.indexOf(0, at));

function inspectElf(bytes) {
  const wide = (at) => Number(bytes.readBigUInt64LE(at));
  const sections = Array.from({ length: bytes.readUInt16LE(60) }, (_, i) => {
    const at = wide(40) + i * 64;
    return { type: bytes.readUInt32LE(at + 4), offset: wide(at + 24), size: wide(at + 32), link: bytes.readUInt32LE(at + 40) };
  }); // prettier-ignore
  const [symbols, dynamic] = [11, 6].map((kind) => sections.find(({ type }) => type === kind));
  const names = sections[dynamic.link].offset;
  const entries = (section, size) => Array.from({ length: section.size / size }, (_, i) => section.offset + i * size);
  return {
    format: 'ELF',
    arch: { 62: 'x64', 183: 'arm64' }[bytes.readUInt16LE(18)],
    needed: entries(dynamic, 16).filter((at) => wide(at) === 1).map((at) => text(bytes, names + wide(at + 8))),
    // A symbol with a section is defined here.
    exports: entries(symbols, 24).filter((at) => bytes.readUInt16LE(at + 6) !== 0).map((at) => text(bytes, names + bytes.readUInt32LE(at))),
    glibc: [...bytes.toString('latin1').matchAll(/GLIBC_2\.(\d+)/g)].reduce((most, [, minor]) => Math.max(most, Number(minor)), 0),
    isSigned: false,
  }; // prettier-ignore
}

function inspectMachO(bytes) {
  const commands = [];
  for (let at = 32, i = 0; i < bytes.readUInt32LE(16); i++, at += bytes.readUInt32LE(at + 4)) {
    commands.push({ type: bytes.readUInt32LE(at) & 0x7fffffff, at });
  }
  const find = (type) => commands.filter((command) => command.type === type).map(({ at }) => at);
  const [table] = find(2);
  const [symbolsAt, numSymbols, namesAt] = [8, 12, 16].map((field) => bytes.readUInt32LE(table + field));
  const symbols = Array.from({ length: numSymbols }, (_, i) => symbolsAt + i * 16);
  return {
    format: 'Mach-O',
    arch: { 0x01000007: 'x64', 0x0100000c: 'arm64' }[bytes.readUInt32LE(4)],
    needed: find(12).map((at) => text(bytes, at + bytes.readUInt32LE(at + 8))),
    // External, in a section and not hidden; C names start with an underscore.
    exports: symbols.filter((at) => (bytes[at + 4] & 0x1f) === 0x0f).map((at) => text(bytes, namesAt + bytes.readUInt32LE(at)).slice(1)),
    glibc: 0,
    isSigned: find(0x1d).length > 0,
  }; // prettier-ignore
}

function inspectPe(bytes) {
  const header = bytes.readUInt32LE(60);
  const optional = header + 24;
  const sections = Array.from({ length: bytes.readUInt16LE(header + 6) }, (_, i) => {
    const at = optional + bytes.readUInt16LE(header + 20) + i * 40;
    const [size, address, , offset] = [8, 12, 16, 20].map((field) => bytes.readUInt32LE(at + field));
    return { size, address, offset };
  });
  const fileAt = (address) => {
    const home = sections.find((section) => address >= section.address && address < section.address + section.size);
    return address - home.address + home.offset;
  };
  const [exportsAt, importsAt] = [112, 120].map((field) => fileAt(bytes.readUInt32LE(optional + field)));
  const needed = [];
  for (let at = importsAt; bytes.readUInt32LE(at + 12) !== 0; at += 20) needed.push(text(bytes, fileAt(bytes.readUInt32LE(at + 12)))); // prettier-ignore
  const names = fileAt(bytes.readUInt32LE(exportsAt + 32));
  const count = bytes.readUInt32LE(exportsAt + 24);
  return {
    format: 'PE',
    arch: { 0x8664: 'x64', 0xaa64: 'arm64' }[bytes.readUInt16LE(header + 4)],
    needed,
    exports: Array.from({ length: count }, (_, i) => text(bytes, fileAt(bytes.readUInt32LE(names + i * 4)))),
    glibc: 0,
    isSigned: false,
  };
}

/** `bytes`: a Buffer of the whole file. Throws if it has none of the three formats or ends too early. */
export function inspectLibrary(bytes) {
  if (bytes.readUInt32BE(0) === 0x7f454c46) return inspectElf(bytes);
  if (bytes.readUInt32LE(0) === 0xfeedfacf) return inspectMachO(bytes);
  if (bytes.readUInt16BE(0) === 0x4d5a) return inspectPe(bytes);
  throw new Error('neither ELF, Mach-O nor PE');
}

/** Libraries that each system has preinstalled. */
const SYSTEM_LIBRARIES = {
  glibc: /^(?:lib(?:c|m|pthread)\.so\.\d|ld-linux-[\w-]+\.so\.\d)$/,
  musl: /^libc\.so$/,
  darwin: /^\/usr\/lib\/libSystem\.B\.dylib$/,
  win32: /^(?:KERNEL32|msvcrt|ntdll)\.dll$/i,
};
/** Node 20 supports nothing older. */
const NEWEST_GLIBC = 28;

/** Why a library cannot be published for a target, or null. */
export function findLibraryProblem(bytes, { platform, arch, libc }) {
  let library;
  try {
    library = inspectLibrary(bytes);
  } catch (error) {
    return `cannot be read: ${error.message}`;
  }
  const format = { linux: 'ELF', darwin: 'Mach-O', win32: 'PE' }[platform];
  if (library.format !== format || library.arch !== arch) return `is ${library.format} for ${library.arch}`;
  if (!library.exports.includes(ENTRY)) return `does not export ${ENTRY}`;
  const foreign = library.needed.filter((name) => !SYSTEM_LIBRARIES[libc ?? platform].test(name));
  if (foreign.length > 0) return `needs ${foreign.join(', ')}`;
  if (library.glibc > NEWEST_GLIBC) return `needs glibc 2.${library.glibc}, newer than 2.${NEWEST_GLIBC}`;
  // macOS on Apple's processors kills a process that loads an unsigned library; the linker's signature is enough.
  return format === 'Mach-O' && arch === 'arm64' && !library.isSigned ? 'is not signed' : null;
}
