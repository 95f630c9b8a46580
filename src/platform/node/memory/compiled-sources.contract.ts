// Sources as JavaScript, for processes of their own: Node does not run TypeScript everywhere.
import { execFileSync } from 'node:child_process';
import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const repository = fileURLToPath(new URL('../../../..', import.meta.url));

/** Compiles `files` (relative to src/) and all they import into `<folder>/out`. */
export function compileSources(folder: string, files: readonly string[]): void {
  const source = join(repository, 'src');
  const config = {
    extends: join(repository, 'tsconfig.json'),
    compilerOptions: { noCheck: true, declaration: false, sourceMap: false, rootDir: source, outDir: join(folder, 'out'), typeRoots: [join(repository, 'node_modules/@types')] }, // prettier-ignore
    files: files.map((name) => join(source, name)),
    include: [],
  };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config));
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  symlinkSync(join(repository, 'node_modules'), join(folder, 'node_modules'));
  const compiler = join(repository, 'node_modules/typescript/bin/tsc');
  execFileSync(process.execPath, [compiler, '-p', folder], { stdio: 'inherit' });
}
