# SPDX-License-Identifier: BSD-3-Clause
# Written by make completions.
_gf_train() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local words='' paths='' list='' before=''
	# an option, = and its word are three words
	if [[ $cur == = ]]; then cur=''
	elif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD - 2]}; fi
	case $prev in
	--model) paths=-f words='alexnet-bn bert-base cifar100-cnn
		cifar100-convex densenet201 digits-cnn-plain digits-cnn
		digits-mlp gpt-text gpt2-small inception-v4 lstm-ptb lstm-text
		mnist-mlp resnet152 resnet18 resnet20 resnet50 vgg16' ;;
	--data) paths=-d words='synthetic digits text' ;;
	--training) paths=-f words='digits-lars gpt-text' ;;
	--augment) list=1 words='none flip crop:4' ;;
	--optimizer) words='sgd nesterov lars lars-paper adamw' ;;
	--exclude) list=1 words='vectors none' ;;
	--schedule) words='constant linear cosine step poly' ;;
	--loss-scale) words='auto none dynamic 65536' ;;
	--bad-gradients) words='end skip' ;;
	--device) words='auto cpu cuda cuda:0 onednn ref' ;;
	--precision) words='f32 f16 bf16' ;;
	--transport) words='auto nccl mpi ucx' ;;
	--join) words='localhost:29600' ;;
	--plan | --weights | --export | --log | --trace | --output | -o) paths=-f ;;
	--checkpoint) paths=-d ;;
	--epochs | --batch | --accumulate | --seed | --label-smoothing | \
		--ema-decay | --steps | --momentum | --weight-decay | --beta1 | \
		--beta2 | --eta | --epsilon | --clip-norm | --lr | --lr-batch | \
		--warmup | --drop-epochs | --drop-factor | --power | --floor | \
		--checkpoint-every | --check-replicas | --log-every | --top-k | \
		--target | --timeout | --threads | --rank | --ranks) return ;;
	*)
		words='--plan --model --data --training --epochs --batch
		--accumulate --seed --augment --label-smoothing --ema-decay
		--steps --optimizer --momentum --weight-decay --beta1 --beta2
		--eta --epsilon --clip-norm --exclude --lr --lr-batch --warmup
		--schedule --drop-epochs --drop-factor --power --floor
		--loss-scale --checkpoint --checkpoint-every --weights --export
		--evaluate --resume --reshard --bad-gradients --check-replicas
		--log --log-every --trace --top-k --target --list
		--print-training --timeout --threads --device --precision
		--transport --join --rank --ranks --cuda-graph --no-cuda-graph
		--replay --output --quiet --verbose --help --usage --version' ;;
	esac
	if [[ $list && $cur == *,* ]]; then before=${cur%,*}, cur=${cur##*,}; fi
	mapfile -t COMPREPLY < <(compgen $paths -P "$before" -W "$words" -- "$cur")
	[[ -z $paths ]] || compopt -o filenames 2> /dev/null
}
complete -F _gf_train gf-train
