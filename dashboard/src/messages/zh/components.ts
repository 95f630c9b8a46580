import { formatCount } from '../../format/numbers.ts';
import type { Messages } from '../en/index.ts';

export const components: Messages['components'] = {
  cancel: '取消',
  close: '关闭',
  copied: '已复制',
  tryAgain: '重试',
  actions: '操作',
  time: '时间',
  slowServer: '服务器尚未响应。',
  request: (id) => `请求 ${id}`,
  more: (count) => `还有 ${formatCount(count)} 项`,
  moreCharacters: (count) => `再显示 ${formatCount(count)} 个字符`,
  filesToAdd: '要添加的文件',
  adding: (name) => `正在添加 ${name}`,
  unchanged: (name) => `${name} 没有变化。`,
  added: (name, numChunks) => `${name}：${formatCount(numChunks)} 个片段。`,
};
