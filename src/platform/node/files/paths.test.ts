import { expect, test } from 'vitest';
import { cacheFolder, configPath, dataFolder, expandHome, hubTokenPath, modelCacheRoot, stateFolder } from './paths.ts';

const at = (environment: Record<string, string>, system = 'linux') => ({ environment, homeFolder: '/home/u', system });

test('the model cache follows the Hugging Face order', () => {
  const all = { HF_HUB_CACHE: '/c', HF_HOME: '/h', XDG_CACHE_HOME: '/x' };
  expect(modelCacheRoot(at(all))).toBe('/c');
  expect(modelCacheRoot(at({ ...all, HF_HUB_CACHE: '' }))).toBe('/h/hub');
  expect(modelCacheRoot(at({ XDG_CACHE_HOME: '/x' }))).toBe('/x/huggingface/hub');
  expect(modelCacheRoot(at({ XDG_CACHE_HOME: 'relative' }))).toBe('/home/u/.cache/huggingface/hub');
  expect(modelCacheRoot(at({}, 'darwin'))).toBe('/home/u/.cache/huggingface/hub');
  expect(modelCacheRoot(at({ HF_HOME: '~/hf' }))).toBe('/home/u/hf/hub');
});

test('the token file', () => {
  expect(hubTokenPath(at({}))).toBe('/home/u/.cache/huggingface/token');
  expect(hubTokenPath(at({ HF_HOME: '/h' }))).toBe('/h/token');
  expect(hubTokenPath(at({ HF_HOME: '/h', HF_TOKEN_PATH: '/t' }))).toBe('/t');
});

test('the data folder and the configuration file', () => {
  expect(dataFolder(at({ RUVLLM_DATA_DIR: '/d', XDG_DATA_HOME: '/x' }))).toBe('/d');
  expect(dataFolder(at({ XDG_DATA_HOME: '/x' }, 'darwin'))).toBe('/x/ruvllm');
  expect(dataFolder(at({}))).toBe('/home/u/.local/share/ruvllm');
  expect(dataFolder(at({}, 'darwin'))).toBe('/home/u/Library/Application Support/ruvllm');
  expect(dataFolder(at({ LOCALAPPDATA: '/l' }, 'win32'))).toBe('/l/ruvllm');
  expect(configPath(at({}))).toBe('/home/u/.config/ruvllm/config.json');
  expect(configPath(at({ XDG_CONFIG_HOME: '/x' }))).toBe('/x/ruvllm/config.json');
  expect(configPath(at({ RUVLLM_CONFIG: '/c.json' }))).toBe('/c.json');
  expect(configPath(at({ APPDATA: '/r' }, 'win32'))).toBe('/r/ruvllm/config.json');
});

test('the state folder', () => {
  expect(stateFolder(at({ RUVLLM_STATE_DIR: '/s', XDG_STATE_HOME: '/x' }))).toBe('/s');
  expect(stateFolder(at({ XDG_STATE_HOME: '/x' }, 'darwin'))).toBe('/x/ruvllm');
  expect(stateFolder(at({ XDG_STATE_HOME: 'relative' }))).toBe('/home/u/.local/state/ruvllm');
  expect(stateFolder(at({}, 'darwin'))).toBe('/home/u/Library/Application Support/ruvllm/State');
  expect(stateFolder(at({ LOCALAPPDATA: '/l' }, 'win32'))).toBe('/l/ruvllm/State');
});

test('the cache folder', () => {
  expect(cacheFolder(at({ RUVLLM_CACHE_DIR: '/c', XDG_CACHE_HOME: '/x' }))).toBe('/c');
  expect(cacheFolder(at({ XDG_CACHE_HOME: '/x' }, 'darwin'))).toBe('/x/ruvllm');
  expect(cacheFolder(at({}))).toBe('/home/u/.cache/ruvllm');
  expect(cacheFolder(at({}, 'darwin'))).toBe('/home/u/Library/Caches/ruvllm');
  expect(cacheFolder(at({ LOCALAPPDATA: '/l' }, 'win32'))).toBe('/l/ruvllm/Cache');
});

test('only a leading ~ is the home folder', () => {
  expect(['~', '~/a', 'a/~', '~b', './~'].map((path) => expandHome(path, at({})))).toEqual([
    '/home/u',
    '/home/u/a',
    'a/~',
    '~b',
    './~',
  ]);
});
