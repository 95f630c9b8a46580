import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';

/** What the path rules look at; injected so that a test can stand on any system. */
export interface PathContext {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly homeFolder: string;
  readonly system: string;
}

/** The process's own environment, home and system. */
export function currentPathContext(): PathContext {
  return { environment: process.env, homeFolder: homedir(), system: process.platform };
}

/** A variable set to nothing counts as unset, as the XDG rules say. */
function variable(context: PathContext, name: string): string | null {
  const value = context.environment[name];
  return value === undefined || value === '' ? null : expandHome(value, context);
}

/** XDG folders that are relative must be ignored, says the specification. */
function absolute(path: string | null): string | null {
  return path !== null && isAbsolute(path) ? path : null;
}

/** `~` and `~/x` become paths below the home folder; everything else stays. */
export function expandHome(path: string, context: PathContext = currentPathContext()): string {
  if (path === '~') return context.homeFolder;
  return /^~[\\/]/.test(path) ? join(context.homeFolder, path.slice(2)) : path;
}

function huggingFaceHome(context: PathContext): string {
  const home = variable(context, 'HF_HOME');
  if (home !== null) return home;
  const cache = absolute(variable(context, 'XDG_CACHE_HOME')) ?? join(context.homeFolder, '.cache');
  return join(cache, 'huggingface');
}

/** Where models are kept, in Hugging Face's order, so that other tools' downloads are found. */
export function modelCacheRoot(context: PathContext = currentPathContext()): string {
  return variable(context, 'HF_HUB_CACHE') ?? join(huggingFaceHome(context), 'hub');
}

/** The file in which Hugging Face's own login keeps the token. */
export function hubTokenPath(context: PathContext = currentPathContext()): string {
  return variable(context, 'HF_TOKEN_PATH') ?? join(huggingFaceHome(context), 'token');
}

/** Where what can be made again is kept: RUVLLM_CACHE_DIR, then the XDG cache folder, then the system's habit. */
export function cacheFolder(context: PathContext = currentPathContext()): string {
  const own = variable(context, 'RUVLLM_CACHE_DIR');
  if (own !== null) return own;
  const xdg = absolute(variable(context, 'XDG_CACHE_HOME'));
  if (xdg !== null) return join(xdg, 'ruvllm');
  if (context.system === 'darwin') return join(context.homeFolder, 'Library', 'Caches', 'ruvllm');
  if (context.system === 'win32') {
    return join(variable(context, 'LOCALAPPDATA') ?? join(context.homeFolder, 'AppData', 'Local'), 'ruvllm', 'Cache');
  }
  return join(context.homeFolder, '.cache', 'ruvllm');
}

/** Where learned state lives: RUVLLM_DATA_DIR, then the XDG data folder, then the system's habit. */
export function dataFolder(context: PathContext = currentPathContext()): string {
  const own = variable(context, 'RUVLLM_DATA_DIR');
  if (own !== null) return own;
  const xdg = absolute(variable(context, 'XDG_DATA_HOME'));
  if (xdg !== null) return join(xdg, 'ruvllm');
  if (context.system === 'darwin') return join(context.homeFolder, 'Library', 'Application Support', 'ruvllm');
  if (context.system === 'win32') {
    return join(variable(context, 'LOCALAPPDATA') ?? join(context.homeFolder, 'AppData', 'Local'), 'ruvllm');
  }
  return join(context.homeFolder, '.local', 'share', 'ruvllm');
}

/** Where what belongs to this machine and user is kept: RUVLLM_STATE_DIR, then the XDG state folder, then the system's habit. */
export function stateFolder(context: PathContext = currentPathContext()): string {
  const own = variable(context, 'RUVLLM_STATE_DIR');
  if (own !== null) return own;
  const xdg = absolute(variable(context, 'XDG_STATE_HOME'));
  if (xdg !== null) return join(xdg, 'ruvllm');
  if (context.system === 'darwin') return join(context.homeFolder, 'Library', 'Application Support', 'ruvllm', 'State');
  if (context.system === 'win32') {
    return join(variable(context, 'LOCALAPPDATA') ?? join(context.homeFolder, 'AppData', 'Local'), 'ruvllm', 'State');
  }
  return join(context.homeFolder, '.local', 'state', 'ruvllm');
}

/** The user's configuration file: RUVLLM_CONFIG, then the XDG config folder, then the system's habit. */
export function configPath(context: PathContext = currentPathContext()): string {
  const own = variable(context, 'RUVLLM_CONFIG');
  if (own !== null) return own;
  const xdg = absolute(variable(context, 'XDG_CONFIG_HOME'));
  if (xdg !== null) return join(xdg, 'ruvllm', 'config.json');
  if (context.system === 'darwin') {
    return join(context.homeFolder, 'Library', 'Application Support', 'ruvllm', 'config.json');
  }
  if (context.system === 'win32') {
    return join(
      variable(context, 'APPDATA') ?? join(context.homeFolder, 'AppData', 'Roaming'),
      'ruvllm',
      'config.json',
    );
  }
  return join(context.homeFolder, '.config', 'ruvllm', 'config.json');
}
