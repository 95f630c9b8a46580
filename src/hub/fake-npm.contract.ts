import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { HubPlatform } from './platform.ts';

export interface TarFile {
  path: string;
  bytes: Uint8Array;
  /** Tar type flag; default a regular file. */
  type?: string;
  /** The size in the header; default: the true one. */
  claims?: number;
  prefix?: string;
}

function header({ path, bytes, type = '0', claims, prefix = '' }: TarFile): Uint8Array {
  const block = Buffer.alloc(512);
  const size = claims ?? bytes.length;
  block.write(path, 0, 100, 'utf8');
  block.write('0000644\0', 100);
  if (size >= 8 ** 11) {
    block[124] = 0x80;
    block.writeBigUInt64BE(BigInt(size), 128);
  } else block.write(size.toString(8).padStart(11, '0'), 124);
  block.write('        ', 148);
  block.write(type, 156);
  block.write('ustar\x0000', 257);
  block.write(prefix, 345, 155, 'utf8');
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return block;
}

/** A pax record block that sets the path of the next entry. */
export function paxPath(path: string): TarFile {
  const body = ` path=${path}\n`;
  let length = body.length + 2;
  while (String(length).length + body.length !== length) length = String(length).length + body.length;
  return { path: 'PaxHeader/x', bytes: Buffer.from(String(length) + body), type: 'x' };
}

export function makeTar(files: readonly TarFile[]): Uint8Array {
  const blocks = files.flatMap((file) => [
    header(file),
    file.bytes,
    new Uint8Array((512 - (file.bytes.length % 512)) % 512),
  ]);
  return Buffer.concat([...blocks, new Uint8Array(1024)]);
}

export interface FakePackage {
  version: string;
  tarball: Uint8Array;
  /** The hash the registry claims; default: the true one. */
  integrity?: string;
}

/** A package whose tarball has these files below `package/`. */
export function makePackage(files: readonly TarFile[], version = '1.0.0'): FakePackage {
  const packed = files.map((file) => ({ ...file, path: file.type === 'x' ? file.path : `package/${file.path}` }));
  return { version, tarball: gzipSync(makeTar(packed)) };
}

/** An npm that answers `view` and `pack` from a table; `calls` records every argument list. */
export function createFakeNpm(packages: Readonly<Record<string, FakePackage>>): {
  runNpm: HubPlatform['runNpm'];
  calls: (readonly string[])[];
} {
  const calls: (readonly string[])[] = [];
  return {
    calls,
    async runNpm(args, { folder }) {
      calls.push(args);
      const spec = args[args.indexOf('--') + 1]!;
      const name = spec.slice(0, spec.lastIndexOf('@'));
      const release = packages[name];
      if (release === undefined) {
        const stdout = JSON.stringify({ error: { code: 'E404', summary: `Not Found - ${name}` } });
        return { exitCode: 1, stdout, stderr: '' };
      }
      if (args[0] === 'pack') {
        writeFileSync(
          join(folder, `${name.replace('@', '').replace('/', '-')}-${release.version}.tgz`),
          release.tarball,
        );
        return { exitCode: 0, stdout: '[]', stderr: '' };
      }
      const integrity = release.integrity ?? `sha512-${createHash('sha512').update(release.tarball).digest('base64')}`;
      return { exitCode: 0, stdout: JSON.stringify({ version: release.version, dist: { integrity } }), stderr: '' };
    },
  };
}
