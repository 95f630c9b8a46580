// Sources as JavaScript, for threads and processes of their own: Node does not run TypeScript everywhere.
import { symlinkSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

const repository = fileURLToPath(new URL('../../../..', import.meta.url));

/** Bundles `files` (relative to src/) with all they import into `folder`, each under its name with `.js` for `.ts`. */
export async function bundleSources(folder: string, files: readonly string[]): Promise<void> {
  const input = Object.fromEntries(files.map((name) => [basename(name, '.ts'), join(repository, 'src', name)]));
  const bundle = await rolldown({ input, platform: 'node', external: (id) => !/^(?:\.|[\\/]|[a-z]:)/i.test(id) });
  await bundle.write({ dir: folder, format: 'es' });
  await bundle.close();
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  symlinkSync(join(repository, 'node_modules'), join(folder, 'node_modules'));
}
