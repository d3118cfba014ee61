// Kubernetes for the tests, as one program: its first argument names the part that it becomes, the others
// are that part's own.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

const usage = "usage: kube etcd|apiserver|controllers|scheduler|kubelet|kubectl [ARGUMENT]..."

func main() {
	if len(os.Args) < 2 {
		fail(usage)
	}
	// Each part reads its arguments from here.
	os.Args = os.Args[1:]
	switch os.Args[0] {
	case "etcd":
		etcdmain.Main(os.Args)
	case "apiserver":
		become(apiserver.NewAPIServerCommand())
	case "controllers":
		become(controllers.NewControllerManagerCommand())
	case "scheduler":
		become(scheduler.NewSchedulerCommand())
	case "kubelet":
		become(kubelet.NewKubeletCommand(context.Background()))
	case "kubectl":
		// It prints errors in its own way, and passes on the exit code of a command in a pod.
		kubectlutil.CheckErr(cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()))
	default:
		fail("unknown part " + os.Args[0] + "; " + usage)
	}
}

func become(part *cobra.Command) {
	os.Exit(cli.Run(part))
}

func fail(message string) {
	fmt.Fprintln(os.Stderr, message)
	os.Exit(2)
}
