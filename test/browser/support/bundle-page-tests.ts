import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

const here = fileURLToPath(new URL('.', import.meta.url));

/** Bundles a worker with tests for a page into `folder`, beside the kernels of the built library. */
export async function bundlePageTests(name: string, folder: string): Promise<void> {
  cpSync(join(here, '../../../dist/browser-modules'), folder, { recursive: true });
  const bundled = await rolldown({
    input: { [name]: join(here, `${name}.ts`) },
    platform: 'browser',
    resolve: { alias: { vitest: join(here, 'page-vitest.ts') } },
    transform: { define: { 'process.env': '{}' } },
  });
  await bundled.write({ dir: folder, format: 'es', entryFileNames: '[name].js', chunkFileNames: 'tests-[hash].js' });
  await bundled.close();
}
