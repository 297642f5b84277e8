# SPDX-License-Identifier: BSD-3-Clause
_gf_train() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	case $prev in
	--model) mapfile -t COMPREPLY < <(compgen -f -W 'digits-mlp digits-cnn digits-cnn-plain lstm-text mnist-mlp cifar100-cnn resnet20' -- "$cur"); return ;;
	--data) mapfile -t COMPREPLY < <(compgen -d -W 'digits text synthetic' -- "$cur"); return ;;
	--schedule) mapfile -t COMPREPLY < <(compgen -W 'constant linear cosine step poly' -- "$cur"); return ;;
	--loss-scale) mapfile -t COMPREPLY < <(compgen -W 'auto none dynamic 65536' -- "$cur"); return ;;
	--bad-gradients) mapfile -t COMPREPLY < <(compgen -W 'end skip' -- "$cur"); return ;;
	--optimizer) mapfile -t COMPREPLY < <(compgen -W 'sgd nesterov lars' -- "$cur"); return ;;
	--training) mapfile -t COMPREPLY < <(compgen -f -W 'digits-lars' -- "$cur"); return ;;
	--augment) mapfile -t COMPREPLY < <(compgen -W 'none flip crop: flip,crop:' -- "$cur"); return ;;
	--transport) mapfile -t COMPREPLY < <(compgen -W 'auto nccl mpi' -- "$cur"); return ;;
	--device) mapfile -t COMPREPLY < <(compgen -W 'auto cpu cuda cuda:0 onednn ref' -- "$cur"); return ;;
	--precision) mapfile -t COMPREPLY < <(compgen -W 'f32 f16 bf16' -- "$cur"); return ;;
	--checkpoint) mapfile -t COMPREPLY < <(compgen -d -- "$cur"); return ;;
	--plan | --log | --trace | --output | -o) mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
	--epochs | --steps | --batch | --accumulate | --lr | --lr-batch | \
		--momentum | --weight-decay | --eta | --exclude | --clip-norm | \
		--warmup | --drop-epochs | --drop-factor | --power | --seed | --checkpoint-every | \
		--check-replicas | --target | --timeout | --threads) return ;;
	esac
	mapfile -t COMPREPLY < <(compgen -W '--plan --model --data --augment --training
		--epochs --steps --batch --accumulate --optimizer --lr
		--lr-batch --momentum --weight-decay --eta --exclude --clip-norm
		--warmup --schedule --drop-epochs --drop-factor --power
		--loss-scale
		--list --print-training --seed --checkpoint --checkpoint-every
		--resume --reshard --bad-gradients --check-replicas --log --trace --target --timeout
		--threads --device --precision --transport --cuda-graph --replay --output --quiet --verbose
		--help
		--usage --version' -- "$cur")
}
complete -F _gf_train gf-train
