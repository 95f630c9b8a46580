import { formatCount } from '../../format/numbers.ts';
import type { Messages } from '../en/index.ts';

export const start: Messages['start'] = {
  title: '开始',
  greeting: '欢迎使用 RuvLLM',
  subtitle: '此服务器在本机上运行语言模型。目前还没有模型。',
  choose: '选择模型',
  chooseHint: '从下面的列表中下载一个。只需下载一次，之后无需联网即可运行。',
  ask: '提问',
  askHint: '与模型对话、添加文件、评价或更正回答：服务器会从中学习。',
  connect: '连接您的程序',
  connectHint: '使用 OpenAI、Anthropic 或 Ollama API 的程序都可以使用此服务器。OpenAI API 的基础 URL：',
  copyAddress: '复制基础 URL',
  models: '适合本机的模型',
  columns: ['模型', '下载:', '内存:', '速度（估计）:'],
  speed: (tokens) => `${tokens} 词元/秒`,
  estimate: '内存和速度均为估计值：速度来自对本机的简短测量，针对单个请求。',
  tooLarge: (count) => `另有 ${formatCount(count)} 个更大的模型超出可用内存。`,
  measuring: '正在查找适合本机的模型',
  use: '使用',
  useModel: (name) => `使用 ${name}`,
  pullModel: (name) => `下载 ${name}`,
  unreachable: '此服务器无法连接 Hugging Face Hub，只能下载来自 npm 的模型。',
  localFile: '要使用自己的模型文件，请用文件路径启动服务器：',
  askAdministrator: '请联系此服务器的管理员添加模型。',
  allModels: '本机上的所有模型及其他引用',
};
