export { readDashboardFiles } from './dashboard-files.ts';
export { createFileSink, type FileSink } from './file-sink.ts';
export { openFileSource } from './file-source.ts';
export { createNodeHubPlatform } from './hub-platform.ts';
export { openKeyFolder } from './key-folder.ts';
export { openModelFile } from './open-model-file.ts';
export { createNodeWasmPlatform } from './wasm-platform.ts';
export { listen, type Listening, type ListenOptions } from './serve.ts';
