import { realpathSync } from 'node:fs';
import { isAbsolute, relative, resolve, sep } from 'node:path';
import { RuvLLMError } from '../../core/errors.ts';

/**
 * Finds adapters that clients name by a path, in these folders only, links included. Whether a file exists outside is not told, nor a byte
 * of one inside that is no adapter.
 */
export function createAdapterFolders(folders: readonly string[]): (path: string) => Promise<string> {
  /** The path without links; null: it is outside, or does not exist. */
  function find(path: string): string | null {
    for (const folder of folders) {
      try {
        const [root, real] = [realpathSync(folder), realpathSync(resolve(folder, path))];
        if (isInside(root, real)) return real;
      } catch {
        continue; // the folder or the path does not exist
      }
    }
    return null;
  }
  /** The same for an adapter: a link in its folder must not lead out either. */
  async function findAdapter(path: string): Promise<string | null> {
    const found = find(path);
    if (found === null) return null;
    const { adapterFilesOf } = await import('../read-adapter.ts');
    const { tensors, config } = adapterFilesOf(found);
    return find(tensors) !== null && (config === null || find(config) !== null) ? found : null;
  }
  return async (path) => {
    const shown = JSON.stringify(path.length > 200 ? `${path.slice(0, 200)}…` : path);
    const found = await findAdapter(path);
    if (found === null) {
      const message = `${shown} is no adapter in the ${folders.length} folders of adapters of this server; --adapter-folder adds one`;
      throw new RuvLLMError('not_found', message);
    }
    const { checkAdapterFiles } = await import('../read-adapter.ts');
    try {
      await checkAdapterFiles(found);
    } catch (error) {
      const formats = 'a GGUF file, or a PEFT folder with adapter_model.safetensors and adapter_config.json';
      const message = `${shown} is not an adapter: it must be ${formats}`;
      throw new RuvLLMError('invalid_model_file', message, { cause: error });
    }
    return found;
  };
}

function isInside(root: string, path: string): boolean {
  const way = relative(root, path);
  return way !== '' && way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}
