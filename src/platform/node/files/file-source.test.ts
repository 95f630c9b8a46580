import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createFileSink } from './file-sink.ts';
import { openFileSource } from './file-source.ts';

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'ruvllm-file-'));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

describe('openFileSource', () => {
  test('reads any range, also into the middle of shared memory', () => {
    const path = join(folder(), 'x');
    writeFileSync(path, '0123456789');
    const source = openFileSource(path);
    expect([source.name, source.sizeBytes]).toEqual([path, 10]);
    const shared = new SharedArrayBuffer(8);
    source.readInto(new Uint8Array(shared, 2, 4), 6);
    expect([...new Uint8Array(shared)]).toEqual([0, 0, 54, 55, 56, 57, 0, 0]);
    source.readInto(new Uint8Array(0), 10);
    source.close();
    source.close();
    expect(() => source.readInto(new Uint8Array(1), 0)).toThrow(/read after close/);
  });

  test('ranges outside the file are io errors with the numbers', () => {
    const path = join(folder(), 'x');
    writeFileSync(path, '0123456789');
    const source = openFileSource(path);
    for (const offset of [-1, 8, 1e300, NaN, 0.5]) {
      expect(() => source.readInto(new Uint8Array(3), offset)).toThrow(expect.objectContaining({ code: 'io' }));
    }
    expect(() => source.readInto(new Uint8Array(3), 8)).toThrow(`${path}: read of 3 bytes at 8, file has 10`);
    source.close();
  });

  test.skipIf(process.platform === 'win32')('a pipe is refused at once, without waiting for its writer', () => {
    const path = join(folder(), 'pipe.gguf');
    execFileSync('mkfifo', [path]);
    // Opens the other end later, so that a test of a source that waits fails instead of blocking for ever.
    const writer = spawn('sh', ['-c', `sleep 2; touch '${path}.opened'; : > '${path}'`], { stdio: 'ignore' });
    expect(() => openFileSource(path)).toThrow(`cannot open ${path}: not a regular file`);
    expect(existsSync(`${path}.opened`)).toBe(false);
    writer.kill();
  });

  test('a file that shrinks under us is told with both sizes', () => {
    const path = join(folder(), 'x');
    writeFileSync(path, '0123456789');
    const source = openFileSource(path);
    truncateSync(path, 4);
    expect(() => source.readInto(new Uint8Array(6), 2)).toThrow(
      `${path}: ends at byte 4, wanted bytes 2 to 8; it had 10 bytes when opened and has 4 now`,
    );
    source.close();
  });

  test('absent files and folders', () => {
    const root = folder();
    expect(() => openFileSource(join(root, 'gone'))).toThrow(expect.objectContaining({ code: 'not_found' }));
    expect(() => openFileSource(root)).toThrow(expect.objectContaining({ code: 'io' }));
  });
});

describe('createFileSink', () => {
  test('nothing is visible under the name until commit, and then all of it', () => {
    const root = folder();
    const path = join(root, 'out');
    writeFileSync(path, 'old');
    const sink = createFileSink(path);
    sink.write(Buffer.from('new '));
    sink.write(Buffer.from('bytes'));
    expect(readFileSync(path, 'utf8')).toBe('old');
    expect(sink.sizeBytes).toBe(9);
    sink.commit();
    sink.abort();
    expect(readFileSync(path, 'utf8')).toBe('new bytes');
    expect(readdirSync(root)).toEqual(['out']);
    expect(() => sink.write(Buffer.from('x'))).toThrow(/write after it was committed/);
  });

  test('abort leaves the folder as it was', () => {
    const root = folder();
    const sink = createFileSink(join(root, 'out'));
    sink.write(new Uint8Array(1000));
    expect(readdirSync(root).length).toBe(1);
    sink.abort();
    expect(readdirSync(root)).toEqual([]);
    expect(() => sink.commit()).toThrow(/commit after it was aborted/);
  });

  test('a folder that is not there, and a target that cannot be replaced', () => {
    const root = folder();
    expect(() => createFileSink(join(root, 'gone', 'out'))).toThrow(expect.objectContaining({ code: 'not_found' }));
    writeFileSync(join(root, 'x'), '');
    const target = mkdtempSync(join(root, 'folder-'));
    writeFileSync(join(target, 'inside'), '');
    const sink = createFileSink(target);
    expect(() => sink.commit()).toThrow(expect.objectContaining({ code: 'io' }));
    expect(readdirSync(root).length).toBe(2);
  });
});
